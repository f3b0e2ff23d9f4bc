"""Running operators of Kopf: their calls, their state, their own event loop."""
