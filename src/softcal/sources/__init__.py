"""Rows wherever they live: files, frames, engines. Tables come out."""
