"""Operators as one file: built by several builders, and run."""
