"""Other operators: peering by priority, and the election of a leader by a lease."""
