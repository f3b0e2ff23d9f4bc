"""Bugs of real operators, each as a small operator, beside one without it."""
