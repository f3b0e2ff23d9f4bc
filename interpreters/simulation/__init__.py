"""Run an operator in the simulated cluster, on virtual time."""
