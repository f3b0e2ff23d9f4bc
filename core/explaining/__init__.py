"""The story of one object, from what can be read of it."""
