"""Mutants of correct operators, to count those that the properties notice."""
