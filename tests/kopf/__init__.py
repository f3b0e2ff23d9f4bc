"""Kopf operators as people write them, and the traces that Kopf left of them."""
