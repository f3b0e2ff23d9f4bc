"""Describe an operator's program: its kinds, selectors, and RBAC rights."""
