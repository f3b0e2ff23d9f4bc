"""The operator's state as records, and the step that opens them for changes."""
