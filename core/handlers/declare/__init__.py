"""Declare handlers: decorators, options, filters, signatures, settings."""
