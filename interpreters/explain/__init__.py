"""Explain the state of one object, from everything that can be read about it."""
