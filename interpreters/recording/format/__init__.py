"""Write and read the file format of recordings."""
