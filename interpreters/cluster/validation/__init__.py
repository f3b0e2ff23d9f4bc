"""The validation of objects of built-in kinds, and of CRDs."""
