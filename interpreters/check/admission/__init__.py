"""Check admission handlers."""
