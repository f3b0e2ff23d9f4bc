"""The operator as a whole: `step`, what it serves, other operators, its health."""
