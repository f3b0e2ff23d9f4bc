"""The author's side: declarations, filters, settings, and how a handler is called."""
