"""The homeserver: its wire, its client, who is meant, how a text becomes events."""
