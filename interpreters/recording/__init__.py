"""Record runs, replay them, and answer questions about them."""
