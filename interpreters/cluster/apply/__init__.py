"""Patches, server-side apply, and the managers of fields."""
