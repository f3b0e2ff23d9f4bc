"""The kinds that the Kubernetes API serves, namespaces, and owners of objects."""
