"""The explorer: it gives an operator faults one by one, and compares its worlds."""
