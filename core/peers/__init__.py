"""Peering with other operators by priority, and leader election by a Lease."""
