"""Send the operator's own write on an object."""
