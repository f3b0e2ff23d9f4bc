"""Feeds, by asyncio and the standard library: a package that `kopf run -m` loads."""
