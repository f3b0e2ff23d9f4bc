"""The explorer: an operator meets faults one by one, and its worlds are compared."""
