"""The kinds that a cluster serves: built-in ones, with types and defaults, and CRDs."""
