"""What we measure ourselves and others by; a package, so that one file can use another's work."""
