"""Bugs of real operators, each as a small operator, next to one without it."""
