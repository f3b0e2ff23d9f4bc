"""Certificates that are issued, rotated by timers, and issued anew after edits.

pykube writes the handled object itself, while its handlers run. All that Kopf stores is
in the status, which is no subresource here.
"""

import datetime
import functools
import hashlib

import kopf
import pykube

KIND = "certificates.replicas.fnop.dev"


class Certificate(pykube.objects.NamespacedAPIObject):
    version = "replicas.fnop.dev/v1"
    endpoint = "certificates"
    kind = "Certificate"


@functools.cache
def api():
    return pykube.HTTPClient(pykube.KubeConfig.from_env(), timeout=30)


def certificate(name, namespace):
    return Certificate.objects(api()).filter(namespace=namespace).get_by_name(name)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.persistence.finalizer = f"{KIND}/revoke"
    settings.persistence.progress_storage = kopf.StatusProgressStorage(
        name="ca", field="status.{name}.progress", touch_field="status.{name}.touched"
    )
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(
        name="ca",
        field="status.{name}.seen",
        ignored_fields=["spec.comment", ["metadata", "labels", "team"]],
    )
    settings.execution.default_backoff = 1.5


def digest(spec, serial):
    text = f"{serial}:{','.join(sorted(spec['names']))}:{spec.get('key', 'rsa')}"
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def issue(name, namespace, spec, serial):
    """Write the Secret of a certificate, new or again."""
    issuer = pykube.ConfigMap.objects(api()).filter(namespace=namespace)
    if issuer.get_or_none(name=spec.get("issuer", "ca")) is None:
        raise kopf.TemporaryError("the issuer is not there", delay=1)
    found = pykube.Secret.objects(api()).filter(namespace=namespace)
    secret = found.get_or_none(name=f"{name}-tls")
    data = {"tls.crt": digest(spec, serial)}
    if secret is not None:
        secret.obj["stringData"] = data
        secret.labels["serial"] = str(serial)
        secret.update()
        return secret
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"labels": {"serial": str(serial)}},
        "stringData": data,
    }
    kopf.adopt(manifest)
    kopf.harmonize_naming(manifest, f"{name}-tls", forced=True, strict=True)
    secret = pykube.Secret(api(), manifest)
    secret.create()
    return secret


@kopf.on.create(KIND)
def issued(name, namespace, spec, status, patch, retry, logger, **_):
    serial = status.get("serial", 0) + 1
    secret = issue(name, namespace, spec, serial)
    patch.status["serial"] = serial
    patch.status["history"] = [*status.get("history", []), f"issued {serial}"]
    logger.info(f"issued by attempt {retry}: {secret.name}")
    return {"secret": secret.name, "digest": digest(spec, serial)}


@kopf.on.create(KIND)
def normalized(name, namespace, logger, **_):
    """Write the spec of the handled object: sorted names, and a default."""
    cert = certificate(name, namespace)
    cert.obj["spec"]["names"] = sorted(cert.obj["spec"]["names"])
    cert.obj["spec"].setdefault("key", "rsa")
    cert.annotations["ca.example.org/normalized"] = "yes"
    cert.update()
    logger.info(f"normalized {cert.obj['spec']['names']}")


@kopf.on.update(KIND)
def reissued(name, namespace, spec, status, diff: kopf.Diff, patch, logger, **_):
    counts: dict[str, int] = {}
    for op, field, old, new in sorted(diff, key=lambda item: item.field):
        counts[op] = counts.get(op, 0) + 1
        where = ".".join(field)
        if op == "add":
            logger.info(f"+{where}: {new}")
        elif op == kopf.DiffOperation.REMOVE:
            logger.info(f"-{where}: {old}")
        else:
            logger.info(f"{op} {where}: {old} to {new}")
    fields = {item.field[1] for item in diff if item.field[0] == "spec"}
    if not fields & {"names", "key", "issuer"}:
        logger.info(f"nothing to issue: {diff}")
        return None
    serial = status["serial"] + 1
    issue(name, namespace, spec, serial)
    patch.status.update(
        serial=serial, history=[*status.get("history", []), f"reissued {serial}"]
    )
    return {str(op): count for op, count in counts.items()}


@kopf.on.update(KIND, field="spec.revoked", new=True)
def revoked(name, namespace, status, logger, **_):
    """Patch the handled object by pykube, then fail once, and succeed."""
    cert = certificate(name, namespace)
    marks = cert.annotations.get("ca.example.org/marks", "")
    cert.patch({"metadata": {"annotations": {"ca.example.org/marks": marks + "x"}}})
    if not marks:
        raise RuntimeError("the list of revoked certificates is locked")
    cert.patch({"status": {"revoked": len(marks) + 1}})
    logger.info("revoked")


def is_short_lived(spec, status, **_):
    return status.get("renewed", 0) < spec.get("renewals", 0)


@kopf.timer(KIND, interval=0.7, initial_delay=2.5, when=is_short_lived)
def renewed(name, namespace, started, runtime, logger, **_):
    """Count renewals by pykube, with what the server has: the view may be old."""
    assert started.tzinfo is not None
    assert runtime >= datetime.timedelta(0)
    cert = certificate(name, namespace)
    status = cert.obj.get("status", {})
    count = status.get("renewed", 0)
    if "serial" not in status or count >= cert.obj["spec"]["renewals"]:
        return
    logger.info(f"renewed {count + 1}")
    cert.patch({"status": {"renewed": count + 1}})


@kopf.timer(KIND, interval=3600, idle=1.5, id="audit", errors=kopf.ErrorsMode.PERMANENT)
def audited(spec, patch, status, logger, **_):
    if spec.get("key") == "weak":
        raise ValueError("the key is weak")
    patch.status["audits"] = [*status.get("audits", []), status.get("serial")][:1]
    logger.info("audited")


@kopf.on.field(KIND, field="status.renewed")
def renewal_seen(old, new, retry, logger, patch, **_):
    if new == 2 and retry < 1:
        raise kopf.TemporaryError("try again", delay=0.3)
    logger.info(f"{old or 0} -> {new}")
    patch.status["last-renewal"] = new


@kopf.on.delete(KIND)
def withdrawn(name, namespace, body, logger, **_):
    secrets = pykube.Secret.objects(api()).filter(namespace=namespace)
    secret = secrets.get_or_none(name=f"{name}-tls")
    if secret is not None:
        cert = Certificate(api(), {**body})
        logger.info(f"{cert.name}: {secret.labels['serial']}, {cert.labels}")
        secret.delete()
        raise kopf.TemporaryError("its clients still use it", delay=0.5)
    logger.info("withdrawn")
