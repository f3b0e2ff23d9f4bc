"""Faults: one file for each, with its rows, its sites, its strike, and its end."""
