"""What the operator knows between two steps, as records, and a step that has them
open."""
