"""The state of a cluster, and the changes to it."""
