"""The organ that hears and speaks."""
