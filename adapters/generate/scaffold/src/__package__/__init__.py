"""A Kubernetes operator for __plural__.__group__."""
