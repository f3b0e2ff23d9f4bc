"""Generate projects, RBAC roles, and OLM bundles."""
