"""Benchmarks and simulations; a package, so that files can import each other."""
