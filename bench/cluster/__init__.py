"""The simulated cluster, beside kube-apiserver and etcd, and by itself."""
