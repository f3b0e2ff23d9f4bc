"""Kopf operators in `fnop check`: their handlers run, and the simulated world waits."""
