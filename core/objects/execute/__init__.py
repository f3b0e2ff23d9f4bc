"""Execute the decided actions."""
