"""Stored objects, quantities, numbers, label selectors, and the server's refusals."""
