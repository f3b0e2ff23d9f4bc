"""One object and its handling: reconcile, attempts, effects, writes."""
