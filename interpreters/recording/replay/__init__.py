"""Replay a recording with a program."""
