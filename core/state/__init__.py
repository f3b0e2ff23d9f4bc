"""The operator's state as records, and the step that has them open."""
