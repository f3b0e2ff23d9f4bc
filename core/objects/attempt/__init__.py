"""Run one attempt of a handler, from its call to its result."""
