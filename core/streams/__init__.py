"""Listing and watching collections."""
