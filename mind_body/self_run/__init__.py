"""The organ that works."""
