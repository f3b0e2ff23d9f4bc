"""What is to be told about one object: its story, from what can be read of it."""
