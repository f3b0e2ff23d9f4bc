"""fnop next to Kopf and a hand-written loop, on a real API server."""
