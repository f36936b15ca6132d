"""How many items, with how many votes each, before any are bought."""
