"""Mailboxes and aliases, by an operator that has grown for years. It works, mostly."""

import copy
import json
import logging
import os
import time

import kopf
import yaml
from kubernetes import client, config

CACHE = {}
ATTEMPTS = {}
STARTED = None


@kopf.on.login(retries=3)
def login_fn(**kwargs):
    config.load_kube_config()
    conf = client.Configuration.get_default_copy()
    header = conf.get_api_key_with_prefix("authorization")
    parts = header.split(" ", 1) if header else []
    scheme, token = (None, None) if len(parts) == 0 else ([None, *parts])[-2:]
    return kopf.ConnectionInfo(
        server=conf.host,
        ca_path=conf.ssl_ca_cert,
        insecure=not conf.verify_ssl,
        username=conf.username or None,
        password=conf.password or None,
        scheme=scheme,
        token=token,
        certificate_path=conf.cert_file,
        private_key_path=conf.key_file,
        priority=30,
    )


@kopf.on.startup()
def startup_fn(settings: kopf.OperatorSettings, logger, memo: kopf.Memo, **kwargs):
    global STARTED
    STARTED = time.perf_counter()
    settings.posting.level = logging.WARNING
    settings.persistence.finalizer = "mailboxes.replicas.fnop.dev/finalizer"
    settings.watching.server_timeout = 210
    settings.batching.worker_limit = 20
    memo["domain"] = "example.org"
    logging.info("started with %d settings", len(vars(settings)) > 3)


@kopf.on.resume("replicas.fnop.dev", "v1", "mailboxes", id="resume_mailbox", backoff=1)
@kopf.on.create("replicas.fnop.dev", "v1", "mailboxes", id="create_mailbox", backoff=1)
def mailbox_fn(body, meta, spec, status, name, namespace, memo, patch, retry, **_):
    ATTEMPTS[name] = ATTEMPTS.get(name, 0) + 1
    owner = body["spec"]["owner"]["name"]
    logging.info(f"mailbox {name} of {owner}, attempt {ATTEMPTS[name]}")
    if ATTEMPTS[name] < 3 and not status:
        raise Exception(f"the server does not know {owner} yet")
    time.sleep(0.2)
    address = "{}@{}".format(body["spec"].get("local", name), memo["domain"])
    with_defaults = {**spec, "quota": spec.get("quota", 10)}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-pod", "labels": {"mailbox": name}},
        "spec": {"containers": [{"name": "imap", "image": "imap:1"}]},
    }
    config_map = client.V1ConfigMap(
        api_version="v1",
        kind="ConfigMap",
        metadata=client.V1ObjectMeta(name=f"{name}-conf"),
        data={
            "mailbox.yaml": yaml.safe_dump(with_defaults),
            "owner": json.dumps(owner),
        },
    )
    kopf.adopt([pod, [config_map]], owner=body)
    kopf.label([pod, config_map], {"domain": memo["domain"]}, force=True)
    core = client.CoreV1Api()
    for create, manifest in (
        (core.create_namespaced_pod, pod),
        (core.create_namespaced_config_map, config_map),
    ):
        try:
            create(namespace, manifest)
        except client.exceptions.ApiException as e:
            if e.status != 409:
                raise
    CACHE[name] = copy.deepcopy(body)
    patch["status"] = {"address": address, "attempts": ATTEMPTS[name], "error": None}
    kopf.event(body, type="Mail", reason="Welcome", message=f"to {address}")
    kopf.event([body, pod], type="Audit", reason="Created", message="by hand")
    return address


@kopf.on.update("replicas.fnop.dev", "v1", "mailboxes")
def update_mailbox(body, old, new, diff, **_):
    cached = CACHE.get(body["metadata"]["name"])
    if cached is not None:
        was = cached["spec"].get("quota")
        logging.info("quota %s -> %s", was, body["spec"].get("quota"))
    if len(diff) == 1 and diff[0][1] == ("spec", "quota"):
        return diff[0][3] - (diff[0][2] or 0)
    CACHE[body["metadata"]["name"]] = dict(body)
    return False


@kopf.on.field("replicas.fnop.dev", "v1", "mailboxes", field="spec.owner.name")
def owner_changed(old, new, body, **_):
    if old:
        kopf.warn(body, reason="Moved", message=f"{old} -> {new}")
        return [old, new]


@kopf.on.delete("replicas.fnop.dev", "v1", "mailboxes", backoff=0.5)
def delete_mailbox(body, namespace, **kwargs):
    name = body["metadata"]["name"]
    CACHE.pop(name, None)
    if kwargs["retry"] < 1:
        raise RuntimeError("there is still mail")
    api = client.CoreV1Api()
    labels = body["metadata"].get("labels", {})
    api.delete_namespaced_pod(f"{name}-pod", namespace)
    logging.warning("deleted %s with labels %s", name, sorted(labels.items()))


@kopf.on.create("aliases")
def create_alias(spec, patch, retry, **_):
    target = spec["for"]
    if target not in CACHE:
        kopf.exception(_["body"], reason="Unknown", exc=KeyError(target))
        raise kopf.TemporaryError("no mailbox " + target, delay=6)
    patch.status["for"] = CACHE[target]["metadata"]["uid"] and target
    patch.setdefault("metadata", {}).setdefault("labels", {})["for"] = target
    return 0


@kopf.on.resume("replicas.fnop.dev/v1", "Alias", deleted=True, retries=2, backoff=0.5)
@kopf.on.create("replicas.fnop.dev/v1", "Alias", retries=2, backoff=0.5)
def broken(status, spec, **_):
    if spec.get("broken"):
        logging.error(status["no"]["such"]["field"])
    return ""


@kopf.on.update(
    category="mail", when=lambda diff, **_: [d for d in diff if d[1][0] == "spec"]
)
def anything_updated(resource, diff, reason, **_):
    words = sorted(f"{d[0]} {'.'.join(d[1])}" for d in diff)
    logging.info(f"{resource.plural}.{resource.group} {reason}: {', '.join(words)}")
    return {"changes": words, "shortcuts": sorted(resource.shortcuts)}


@kopf.on.event("", "v1", "pods", labels={"mailbox": kopf.PRESENT})
def pod_event(event, logger, **_):
    obj = event["object"]
    key = (obj["metadata"]["name"], event["type"])
    if key not in CACHE:
        CACHE[key] = 1
        logger.info("pod %s: %s %s", key[0], event["type"], obj["status"]["phase"])


@kopf.on.event("replicas.fnop.dev", "v1", kopf.EVERYTHING)
def any_event(event, resource, logger, type, **_):
    kind = event["object"]["kind"]
    if CACHE.setdefault(kind, set()) is not None and type == "DELETED":
        logger.info(f"{kind} {event['object']['metadata']['name']} is gone for good")


if __name__ == "__main__":
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    kopf.run(standalone=True, namespace=os.environ["REPLICA_NAMESPACE"])
