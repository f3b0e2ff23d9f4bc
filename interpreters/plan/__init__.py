"""The rehearsal of an operator: what it would do to a cluster, without doing it."""
