"""Read rows from files, frames, and engines into tables."""
