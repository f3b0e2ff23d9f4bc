"""Admission webhooks: which of them review a write, in what order, and what follows."""
