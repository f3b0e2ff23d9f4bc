"""Each container of the pods gets the port of its metrics, again and again."""

import fnop

PORT = {"name": "METRICS_PORT", "value": "9090"}


@fnop.on.mutate("xs.example.com")
def with_port(spec, patch, **_):
    patch.spec["env"] = [*spec.get("env", ()), PORT]


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
