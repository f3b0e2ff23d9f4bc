"""What a recording holds: attempts with their views, asked again or told."""
