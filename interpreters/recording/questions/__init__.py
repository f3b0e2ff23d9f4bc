"""Answer questions about one recording: story, timeline, provenance."""
