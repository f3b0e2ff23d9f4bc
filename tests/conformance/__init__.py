"""What an API server answers, case by case: simulated, real, and as written down."""
