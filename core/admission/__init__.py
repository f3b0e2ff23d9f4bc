"""Admission: what may be stored, decided before it is, by pure functions."""
