"""Continue a recorded run in the simulated cluster."""
