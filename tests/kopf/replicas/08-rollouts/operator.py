"""Rollouts to sites, by handlers that a loop makes, with models of the client library.

The program calls the command line of Kopf. It also handles Deployments that it owns.
"""

import functools
import logging
import os
import time

import kopf
import kopf.cli
from kubernetes import client

KIND = "rollouts.replicas.fnop.dev"
OWNED = {"rollout": kopf.PRESENT}

kopf.set_default_lifecycle(kopf.lifecycles.asap)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.batching.worker_limit = 8
    settings.batching.exit_timeout = 1.0
    settings.watching.reconnect_backoff = 0.5
    settings.watching.inactivity_timeout = 90
    settings.posting.level = logging.ERROR
    settings.persistence.finalizer = "replicas.fnop.dev/rollouts"
    settings.persistence.progress_storage = kopf.MultiProgressStorage(
        [
            kopf.AnnotationsProgressStorage(prefix="rollouts.fnop.dev", v1=False),
            kopf.AnnotationsProgressStorage(prefix="old.fnop.dev"),
        ]
    )
    settings.persistence.diffbase_storage = kopf.MultiDiffBaseStorage(
        [
            kopf.AnnotationsDiffBaseStorage(prefix="rollouts.fnop.dev", v1=False),
            kopf.StatusDiffBaseStorage(field="status.essence"),
        ]
    )


def timed(fn):
    """Log that a handler is over, and turn the client's refusals into retries."""

    @functools.wraps(fn)
    def wrapper(*args, logger, **kwargs):
        began = time.perf_counter()
        try:
            return fn(*args, logger=logger, **kwargs)
        except client.ApiException as error:
            raise kopf.TemporaryError(f"refused: {error.status}", delay=1) from error
        finally:
            took = time.perf_counter() - began
            logger.info(f"{fn.__name__} took {'long' if took > 30 else 'little'}")

    return wrapper


def deployment(name, site, image):
    labels = {"app": name, "site": site}
    container = client.V1Container(name="main", image=image)
    return client.V1Deployment(
        api_version="apps/v1",
        kind="Deployment",
        metadata=client.V1ObjectMeta(name=f"{name}-{site}", labels=dict(labels)),
        spec=client.V1DeploymentSpec(
            replicas=0,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[container]),
            ),
        ),
    )


def handler_of(site):
    """A closure for each site; Kopf knows it by the id alone."""

    @timed
    def roll_out(name, namespace, spec, logger, patch, **kwargs):
        if site not in spec.get("sites", []):
            return None
        model = deployment(name, site, spec["image"])
        kopf.adopt(model)
        kopf.label(model, {"rollout": name}, nested=["spec.template"])
        kopf.append_owner_reference(model)  # the owner is there already
        api = client.AppsV1Api()
        try:
            api.create_namespaced_deployment(namespace, model)
        except client.ApiException as error:
            if error.status != 409:
                raise
            api.patch_namespaced_deployment(f"{name}-{site}", namespace, model)
        patch.setdefault("status", {}).setdefault("images", {})[site] = spec["image"]
        return spec["image"]

    return roll_out


for site in ("oslo", "rome"):
    for decorator in (kopf.on.create, kopf.on.update):
        decorator(KIND, id=site, param=site)(handler_of(site))


@kopf.on.update(KIND, field="spec.paused", value=True)
def pause(body, patch, logger, **_):
    """Change lists by functions: a merge patch would replace them."""

    def note(raw):
        conditions = raw.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [each for each in conditions if each["type"] != "Paused"]
        conditions.append({"type": "Paused", "status": "True"})

    patch.fns.append(note)
    patch.status["seen"] = body.status.get("conditions", "none")


@kopf.on.field(KIND, field="status.conditions")
def conditions(old, new, patch, **_):
    patch.status["count"] = len(new or [])


@kopf.on.create("apps", "v1", "deployments", labels=OWNED)
@kopf.on.resume("apps", "v1", "deployments", labels=OWNED)
def deployed(labels, name, logger, **_):
    logger.info(f"{name} is of {labels['rollout']}")


@kopf.on.field(
    "apps", "v1", "deployments", labels=OWNED, field="spec.template.spec.containers"
)
async def image_changed(old, new, logger, **_):
    images = [each["image"] for each in new]
    logger.error(f"from {old and old[0]['image']} to {images}")


@kopf.on.delete(KIND)
@timed
def withdrawn(name, namespace, logger, **_):
    api = client.AppsV1Api()
    found = api.list_namespaced_deployment(namespace, label_selector=f"rollout={name}")
    for each in found.items:
        api.delete_namespaced_deployment(each.metadata.name, namespace)
    logger.info(f"{len(found.items)} withdrawn")


if __name__ == "__main__":
    options = ["--standalone", "--verbose", "--log-format=json"]
    kopf.cli.main(["run", *options, "-n", os.environ["REPLICA_NAMESPACE"]])
