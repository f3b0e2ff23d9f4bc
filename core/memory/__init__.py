"""The state that is stored on an object: progress, last-handled state, conditions."""
