"""Admission webhooks: which of them review a write, in what order, and the results."""
