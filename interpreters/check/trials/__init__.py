"""Run one script under one schedule of faults."""
