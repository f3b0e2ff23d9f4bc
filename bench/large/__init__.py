"""A restart over a large collection that needs nothing."""
