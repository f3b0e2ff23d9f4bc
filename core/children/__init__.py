"""The children of an object: the desired ones, compared with the existing ones."""
