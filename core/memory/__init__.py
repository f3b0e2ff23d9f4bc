"""What is remembered of an object, on the object itself: progress, last-seen state,
conditions."""
