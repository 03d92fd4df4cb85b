"""The organ that decides who may act, and when."""
