"""Run an operator: the loop, its requests, and their answers."""
