"""Keep what is known of the objects: their versions, indices, and logs."""
