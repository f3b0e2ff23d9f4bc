"""The cost of keeping children as desired, on a real API server."""
