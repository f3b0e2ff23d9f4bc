"""The answers of an API server, case by case: simulated, real, and recorded."""
