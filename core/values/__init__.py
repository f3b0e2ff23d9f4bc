"""Immutable values, and pure functions of them: objects, diffs, causes, queues."""
