"""Gates with webhooks that check and change them, and a program that calls `kopf.run`.

The certificates are mounted, as cert-manager would do it.
"""

import os
import pathlib

import kopf

GATES = "gates.replicas.fnop.dev"
CERTIFICATES = pathlib.Path(os.environ["REPLICA_CERTIFICATES"])


def mounted(folder: pathlib.Path) -> kopf.WebhookServer:
    return kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        port=int(os.environ["REPLICA_PORT"]),
        certfile=folder / "server.crt",
        pkeyfile=folder / "server.key",
        cafile=folder / "ca.crt",
    )


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.admission.server = mounted(CERTIFICATES)
    settings.admission.managed = GATES
    settings.peering.standalone = True


@kopf.on.mutate(GATES, operation="CREATE")
def with_defaults(spec: kopf.Spec, patch: kopf.Patch, warnings: list[str], **_):
    if not spec.get("width"):
        patch.spec["width"] = 2
        warnings.append("a gate without a width has 2")


@kopf.on.mutate(GATES, operations=["CREATE", "UPDATE"], id="sorted-keys")
async def keys_in_order(spec, patch, userinfo, **_):
    keys = spec.get("keys", [])
    if keys != sorted(set(keys)):
        patch.fns.append(lambda body: body["spec"].update(keys=sorted(set(keys))))
    patch.metadata.labels["asked-by"] = userinfo["username"]


def is_forced(annotations, **_):
    return annotations.get("force") == "yes"


@kopf.on.validate(GATES, when=kopf.not_(is_forced))
def is_wide(spec, old, operation, dryrun, **_):
    if operation == "DELETE":
        return
    if spec.get("width", 0) > 10:
        raise kopf.AdmissionError(f"too wide: {spec['width']}", code=422)
    if old and spec["width"] < old["spec"]["width"]:
        raise kopf.AdmissionError("a gate does not shrink")


@kopf.on.validate(GATES, operation="DELETE", id="open")
def may_go(spec, warnings, **_):
    if spec.get("keeper"):
        raise kopf.PermanentError(f"{spec['keeper']} is still there")
    warnings.append("the wall has a hole now")


@kopf.on.validate(GATES, field="spec.keeper", value="troll")
def no_trolls(**_):
    raise ValueError("trolls sleep by day")


@kopf.on.create(GATES)
@kopf.on.update(GATES)
def built(spec, patch, logger, **_):
    logger.info(f"built, {spec['width']} wide")
    patch.status["keys"] = len(spec.get("keys", []))


if __name__ == "__main__":
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    kopf.run(namespaces=[os.environ["REPLICA_NAMESPACE"]])
