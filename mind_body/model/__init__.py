"""The providers: one small port, and those who answer through it."""
