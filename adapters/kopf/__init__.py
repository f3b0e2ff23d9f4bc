"""Kopf's API on fnop: operators that are written with Kopf run unchanged."""
