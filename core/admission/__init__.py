"""Admission: pure functions that decide whether a write may be stored."""
