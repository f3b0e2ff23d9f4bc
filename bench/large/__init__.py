"""A restart over a large collection without any work to do."""
