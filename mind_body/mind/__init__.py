"""What is remembered: one SQLite file per Mind. SQL is written here and in no other room."""
