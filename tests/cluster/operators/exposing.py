"""An operator that exposes each example by a service, and copies its token."""

from typing import Any

import fnop


@fnop.reconcile("fnopexamples", owns=["services", "configmaps", "secrets"])
def expose(name: str, spec: fnop.Spec, children: Any, **_: Any) -> fnop.Desired:
    """A load balancer, a config map and a secret."""
    if spec.get("size", 0) < 0:
        raise fnop.PermanentError(f"no size of {spec['apiToken']}")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "ports": [{"name": "web", "port": spec.get("port", 80), "protocol": "TCP"}],
        },
    }
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"dsn": f"postgres://u:{spec['apiToken']}@db"},
    }
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"token": spec["apiToken"]},
    }
    found = children["services"].get(name, {}).get("spec", {})
    status = {"at": found.get("clusterIP", "")}
    return fnop.desired([service, config, secret], status=status)
