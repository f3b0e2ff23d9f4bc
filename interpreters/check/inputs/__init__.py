"""Find inputs that a handler reads but ignores."""
