"""Authentication by tokens, authorization by RBAC, and reviews."""
