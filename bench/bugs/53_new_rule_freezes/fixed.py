"""Storage is required from now on for new objects."""

import fnop


@fnop.on.validate("xs.example.com", operations=["CREATE", "UPDATE"])
def has_storage(spec, **_):
    if not spec.get("storage"):
        raise fnop.Denied("no storage is configured", field="spec.storage")


@fnop.reconcile("xs.example.com", owns="configmaps")
def configured(name, spec, **_):
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"storage": spec.get("storage", "")},
    }
    return fnop.desired([config])
