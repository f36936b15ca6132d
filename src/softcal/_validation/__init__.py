"""Input validation: what the caller holds becomes checked arrays."""
