"""Execute the actions that were decided."""
