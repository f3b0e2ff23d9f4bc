"""The simulated cluster, next to kube-apiserver and etcd, and by itself."""
