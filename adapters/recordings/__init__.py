"""Store recordings in files, and show them."""
