"""Structural schemas: their compilation, their value rules, and CEL."""
