"""The author's side: declarations, filters, settings, and calls of handlers."""
