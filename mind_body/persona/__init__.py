"""The organ that takes turns."""
