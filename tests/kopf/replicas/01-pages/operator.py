"""Pages, each published as a ConfigMap with the official client, in sync handlers.

The client's configuration is the one that Kopf's login has loaded.
"""

import logging

import kopf
from kubernetes import client
from kubernetes.client.rest import ApiException

GROUP, VERSION, PLURAL = "replicas.fnop.dev", "v1", "pages"
MARKER = f"{PLURAL}.{GROUP}"

log = logging.getLogger(__name__)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.loggers = True
    settings.posting.level = logging.WARNING
    settings.persistence.finalizer = f"{MARKER}/unpublish"
    settings.persistence.progress_storage = kopf.StatusProgressStorage(
        field="status.progress"
    )
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=MARKER, key="last-published"
    )
    settings.watching.server_timeout = 5 * 60
    settings.watching.client_timeout = 5 * 60 + 30
    settings.watching.connect_timeout = 60
    log.info("pages are published from now on")


def theme_of(spec, namespace):
    """The colours of the theme. A theme may come later than its pages."""
    wanted = spec.get("theme")
    if not wanted:
        return "plain"
    try:
        found = client.CoreV1Api().read_namespaced_secret(wanted, namespace)
    except ApiException as error:
        if error.status == 404:
            raise kopf.TemporaryError(f"no theme {wanted!r} yet", delay=5) from error
        raise
    return sorted(found.data)[0]


def rendered(spec: kopf.Spec, namespace: str, **kwargs) -> dict:
    """The ConfigMap. It gets all that the handler got, and uses a part of it."""
    lines = [f"theme={theme_of(spec, namespace)}", f"title={spec['title']}"]
    lines += [f"reason={kwargs['reason']}", f"retry={kwargs['retry']}"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"page-{kwargs['name']}"},
        "data": {"index": "\n".join(lines)},
    }


@kopf.on.resume(GROUP, VERSION, PLURAL, retries=5)
@kopf.on.create(GROUP, VERSION, PLURAL, retries=5)
@kopf.on.update(GROUP, VERSION, PLURAL, retries=5)
def publish(logger, namespace, patch, **kwargs):
    patch.status["attempt"] = kwargs["retry"] + 1  # written even if the attempt fails
    body = rendered(namespace=namespace, **kwargs)
    kopf.adopt(body)
    kopf.label(body, {"page": kwargs["name"]})
    api = client.CoreV1Api()
    try:
        made = api.create_namespaced_config_map(namespace, body)
        logger.info("published %s", made.metadata.name)
    except ApiException as error:
        if error.status != 409:
            raise
        name = body["metadata"]["name"]
        api.patch_namespaced_config_map(name, namespace, {"data": body["data"]})
        logger.warning(f"published {name} once more")
    return {"configMap": body["metadata"]["name"], "title": kwargs["spec"]["title"]}


@kopf.on.field(GROUP, VERSION, PLURAL, field="spec.title")
def retitled(old, new, diff: kopf.Diff, patch: kopf.Patch, logger: kopf.Logger, **_):
    operations = [operation for operation, *_ in diff]
    logger.info(f"title {old!r} -> {new!r}: {operations}")
    patch.status["titles"] = [title for title in (old, new) if title]


@kopf.on.delete(GROUP, VERSION, PLURAL)
def unpublish(name, namespace, logger, **_):
    try:
        client.CoreV1Api().delete_namespaced_config_map(f"page-{name}", namespace)
    except ApiException as error:
        if error.status != 404:
            raise kopf.TemporaryError("the ConfigMap is locked", delay=2) from error
    logger.error("unpublished: an error on purpose, which is an Event")
