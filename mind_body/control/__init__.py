"""What is allowed: brake, dial, and the one reader of both."""
