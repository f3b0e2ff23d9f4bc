"""Each container of the pods gets the port of its metrics, once."""

import fnop

PORT = {"name": "METRICS_PORT", "value": "9090"}


@fnop.on.mutate("xs.example.com")
def with_port(spec, patch, **_):
    env = spec.get("env", ())
    if PORT not in env:
        patch.spec["env"] = [*env, PORT]


@fnop.reconcile("xs.example.com", owns="configmaps")
def configured(name, spec, **_):
    found = {each["name"]: each["value"] for each in spec.get("env", ())}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-env"},
        "data": found,
    }
    return fnop.desired([config])
