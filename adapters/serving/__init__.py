"""Serve over HTTP: the simulated cluster, probes, metrics."""
