"""Explain the state of one object, from what can be read of it."""
