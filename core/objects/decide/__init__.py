"""Decide the next action on one object."""
