"""Serving admission webhooks: HTTPS, certificates, and answers to reviews."""
