"""Requests: their paths, options, selectors and bodies."""
