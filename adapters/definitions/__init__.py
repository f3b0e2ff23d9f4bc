"""Generate CustomResourceDefinitions from an author's classes."""
