"""The children of an object: what is desired, beside what is there."""
