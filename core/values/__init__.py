"""Immutable values and the pure rules over them: objects, differences, causes,
queues."""
