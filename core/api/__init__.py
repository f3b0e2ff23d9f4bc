"""What the Kubernetes API serves, and how its objects belong together."""
