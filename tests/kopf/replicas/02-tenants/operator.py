"""Tenants with an account and a ConfigMap per environment, by pykube and sub-handlers.

The definition has no status subresource. Progress is kept where Kopf keeps it unasked.
"""

import functools

import kopf
import pykube

TENANTS = ("replicas.fnop.dev", "v1", "tenants")
PAUSED = "replicas.fnop.dev/paused"


@functools.lru_cache(maxsize=1)
def api():
    return pykube.HTTPClient(pykube.KubeConfig.from_env())


def applied(kind, data):
    """Create it, or write its new data, if any."""
    found = kind.objects(api()).filter(namespace=data["metadata"]["namespace"])
    existing = found.get_or_none(name=data["metadata"]["name"])
    if existing is None:
        kind(api(), data).create()
        return "created"
    if "data" in data and existing.obj.get("data") != data["data"]:
        existing.patch({"data": data["data"]})
        return "updated"
    return "kept"


def account(environment, *, name, logger, **_):
    data = {"apiVersion": "v1", "kind": "ServiceAccount"}
    data["metadata"] = {"name": f"{name}-{environment}"}
    kopf.harmonize_naming(data)  # it has a name already, which stays
    kopf.adjust_namespace(data)
    kopf.append_owner_reference(data, controller=False, block_owner_deletion=False)
    kopf.label(data, {"environment": environment})
    logger.info(f"account of {environment}: {applied(pykube.ServiceAccount, data)}")
    return f"{name}-{environment}"


def limits(name, spec, environment, **kwargs):
    if environment == "mars":
        raise kopf.PermanentError("there is no cluster on mars")
    pods = spec.get("quota", 1) * (2 if environment == "production" else 1)
    data = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"pods": str(pods)}}
    data["metadata"] = {"name": f"{name}-{environment}"}
    kopf.adopt(data)
    kopf.label(data, {"environment": environment}, forced=True)
    kwargs["logger"].info(f"limits of {environment}: {applied(pykube.ConfigMap, data)}")
    return {"pods": pods}


@kopf.on.create(*TENANTS, annotations={PAUSED: kopf.ABSENT})
@kopf.on.update(*TENANTS, annotations={PAUSED: kopf.ABSENT})
def provision(spec, **_):
    for environment in spec.get("environments", []):
        made = functools.partial(account, environment)
        kopf.register(made, id=f"account-{environment}")

        @kopf.subhandler(id=f"limits-{environment}")
        def limits_of(environment=environment, **kwargs):
            return limits(environment=environment, **kwargs)

    return "provisioned"


@kopf.on.update(*TENANTS, annotations={PAUSED: kopf.PRESENT})
def paused(logger, patch, meta, **_):
    reason = meta.annotations[PAUSED]
    logger.info(f"nothing is provisioned: {reason}")
    patch.metadata.annotations["replicas.fnop.dev/seen"] = reason
    patch.metadata.labels["paused"] = "yes"


@kopf.on.create(*TENANTS, errors=kopf.ErrorsMode.PERMANENT)
def welcome(spec, logger, **_):
    address, _, domain = spec["contact"].partition("@")
    if not domain:
        raise ValueError(f"no mail goes to {address}")
    logger.info(f"mail to {address}")


@kopf.on.create(*TENANTS, errors=kopf.ErrorsMode.IGNORED)
def survey(spec, **_):
    return spec["no-such-field"]


# Handlers need no `def`.
kopf.on.create(*TENANTS, id="count")(lambda spec, **_: len(spec["environments"]))
kopf.on.delete(*TENANTS, id="farewell", optional=True)(
    lambda name, logger, **_: logger.info(f"{name} leaves")
)
