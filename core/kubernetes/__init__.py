"""Conventions of Kubernetes: quantities, durations, label selectors, names."""
