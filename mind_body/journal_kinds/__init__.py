"""Every kind of line that the journal has: its id, its usual level, and what the shipped catalog says about it."""
