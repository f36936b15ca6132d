"""Input validation: convert what the caller passes to validated arrays."""
