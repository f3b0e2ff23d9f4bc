"""Ask the handlers of another program about a recorded run."""
