"""Connect to a real cluster: client, kubeconfig, credentials."""
