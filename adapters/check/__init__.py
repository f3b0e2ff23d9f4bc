"""Check operators from the command line and from tests."""
