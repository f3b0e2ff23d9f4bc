"""Compare two recorded runs."""
