"""Kopf operators in `fnop check` and `fnop replay`, which need no cluster."""
