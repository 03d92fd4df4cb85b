"""The operator's verbs."""
