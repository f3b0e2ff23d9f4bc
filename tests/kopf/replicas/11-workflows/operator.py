"""Workflows: one Pod after the other. The Pods' handlers write the workflows' status.

No kubelet is needed: who plays the cluster writes the phases of the Pods.
"""

import logging
import time

import kopf
import kubernetes
import pykube

GROUP = "replicas.fnop.dev"
WORKFLOW = "workflow-name"
logger = logging.getLogger(__name__)

started_at = None
totals = {"pods": 0}


class Workflow(pykube.objects.NamespacedAPIObject):
    version = f"{GROUP}/v1"
    endpoint = "workflows"
    kind = "Workflow"


@kopf.on.startup(id="init")
async def startup_fn(settings: kopf.OperatorSettings, memo: kopf.Memo, **_):
    global started_at
    started_at = time.time()  # noqa: TID251
    memo.owners = {}
    settings.execution.max_workers = 8
    settings.posting.level = logging.INFO
    settings.background.cancellation_polling = 1
    settings.background.instant_exit_timeout = 0.5


@kopf.on.startup(retries=3, backoff=0.2)
def check_version(retry, logger, **_):
    """The first attempt fails, as it does behind a slow proxy."""
    if retry < 1:
        raise kopf.TemporaryError("the API is slow today", delay=0.3)
    logger.info("the API answers")


@kopf.on.cleanup()
async def cleanup_fn(logger, memo, **_):
    logger.info(f"workflows that were seen: {sorted(memo.owners)}")


@kopf.on.cleanup(errors=kopf.ErrorsMode.PERMANENT)
def broken_cleanup(**_):
    raise ValueError("nothing to sweep")


def pod_of(name, step, image, attempt):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{step}-{attempt}"},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [{"name": "step", "image": image, "args": [step]}],
        },
    }


def launch(name, namespace, spec, step, attempt, owner=None):
    pod = pod_of(name, step, spec["image"], attempt)
    kopf.adopt(pod, owner=owner)
    kopf.label(pod, {WORKFLOW: name, "step": step, "attempt": str(attempt)})
    try:
        kubernetes.client.CoreV1Api().create_namespaced_pod(namespace, pod)
    except kubernetes.client.rest.ApiException as e:
        if e.status != 409:
            raise
    totals["pods"] += 1


@kopf.on.create(GROUP, "workflows", retries=5, timeout=60, backoff=1)
def create_fn(spec, name, namespace, body, patch, memo, **kwargs):
    steps = spec.get("steps") or []
    if not steps:
        kopf.warn(body, reason="Empty", message="there are no steps")
        raise kopf.PermanentError("a workflow needs steps")
    memo.owners[name] = len(steps)
    launch(name, namespace, spec, steps[0], 0)
    patch.status["phase"] = "Running"
    patch.status["step"] = steps[0]
    patch.status["attempts"] = 0
    kopf.info(body, reason="Started", message=f"{len(steps)} steps from {steps[0]}")
    return {"pods": 1}


@kopf.on.resume(GROUP, "workflows")
def resume_fn(name, spec, memo, status, **_):
    memo.owners[name] = len(spec["steps"] or [])
    return {"phase": status.get("phase", "unknown")}


@kopf.on.create(GROUP, "workflows", errors=kopf.ErrorsMode.PERMANENT, id="audit")
async def audit_fn(spec, logger, **_):
    limit = spec["retryLimit"]
    logger.info(f"at most {limit} attempts")


@kopf.on.update(
    GROUP, "workflows", field="spec.steps", errors=kopf.ErrorsMode.PERMANENT
)
def steps_changed(old, new, status, body, **_):
    try:
        if status["step"] not in new:
            raise RuntimeError(f"the step {status['step']} runs, and stays")
    except RuntimeError as e:
        kopf.exception(body, reason="StepsChanged", message="refused:", exc=e)
        raise
    kopf.event(
        body, type="Normal", reason="StepsChanged", message=f"{len(old)} -> {len(new)}"
    )


@kopf.on.update(GROUP, "workflows", field="spec.image", timeout=2, backoff=0.7)
def image_changed(new, retry, started, runtime, body, **_):
    """The registry never answers, and the handler gives up in time."""
    if ":" in new:
        return new
    try:
        raise ConnectionError(f"no registry for {new}")
    except ConnectionError:
        kopf.exception(body)
        raise


# ------------------------------------------------------------------------ pods


def follow(workflow, namespace, step, phase, attempt, logger):
    """Write the status of the workflow; launch the next Pod, or the same once more."""
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    try:
        parent = Workflow.objects(api).filter(namespace=namespace).get(name=workflow)
    except pykube.exceptions.ObjectDoesNotExist:
        logger.warning(f"the workflow {workflow} is gone")
        return
    spec, status = parent.obj["spec"], parent.obj.get("status", {})
    steps = spec["steps"]
    if status.get("step") != step:
        return
    update = {}
    if phase == "Succeeded":
        place = steps.index(step)
        if place + 1 < len(steps):
            following = steps[place + 1]
            launch(workflow, namespace, spec, following, 0, owner=parent.obj)
            update = {"step": following, "attempts": 0}
        else:
            update = {"phase": "Succeeded", "step": None}
    elif phase == "Failed":
        if attempt < spec.get("retryLimit", 1):
            launch(workflow, namespace, spec, step, attempt + 1, owner=parent.obj)
            update = {"attempts": attempt + 1}
        else:
            update = {"phase": "Failed", "failedStep": step}
            kopf.warn(
                parent.obj, reason="Failed", message=f"{step} after {attempt + 1}"
            )
    if update:
        parent.patch({"status": {**update, "seen": phase}}, subresource="status")
        logger.info(f"{step} has {phase.lower()}: {sorted(update)}")


@kopf.on.field("v1", "pods", field="status.phase", labels={WORKFLOW: kopf.PRESENT})
def pod_phase(old, new, labels, namespace, name, logger, **_):
    logger.info(f"{name}: {old} -> {new}")
    if new in ("Succeeded", "Failed"):
        follow(
            labels[WORKFLOW],
            namespace,
            labels["step"],
            new,
            int(labels["attempt"]),
            logger,
        )


@kopf.on.event(
    "v1",
    "pods",
    labels={WORKFLOW: kopf.PRESENT},
    when=lambda event, **_: event["type"] == "DELETED",
)
def pod_gone(event, labels, namespace, name, status, logger, **_):
    """A Pod that is deleted before its end has failed."""
    if status.get("phase") == "Pending":
        follow(
            labels[WORKFLOW],
            namespace,
            labels["step"],
            "Failed",
            int(labels["attempt"]),
            logger,
        )


# ---------------------------------------------------------------------- timers


def running(status, **_):
    return status.get("phase") == "Running" and status.get("polls", 0) < 3


@kopf.timer(GROUP, "workflows", interval=1, initial_delay=1, sharp=True, when=running)
def poll(status, patch, retry, memo, **_):
    memo.polls = memo.get("polls", 0) + 1
    patch.status["polls"] = status.get("polls", 0) + 1


@kopf.timer(
    GROUP,
    "workflows",
    interval=60,
    idle=3,
    when=lambda status, **_: status.get("phase") in ("Succeeded", "Failed"),
)
async def expire(patch, logger, status, **_):
    patch.status["expired"] = status["phase"]
    logger.info("would be deleted by its time to live")


@kopf.timer(
    GROUP,
    "workflows",
    interval=10,
    initial_delay=lambda **_: 0.3,
    errors=kopf.ErrorsMode.PERMANENT,
    when=lambda status, **_: "measured" not in status,
)
def once_broken(patch, **_):
    patch.status["measured"] = False
    raise LookupError("a metric is missing")


@kopf.on.delete(GROUP, "workflows", retries=2, backoff=0.5)
def delete_fn(name, namespace, memo, retry, logger, **_):
    core = kubernetes.client.CoreV1Api()
    pods = core.list_namespaced_pod(namespace, label_selector=f"{WORKFLOW}={name}")
    logger.info(
        f"{len(pods.items)} pods go with it, polled: {memo.get('polls', 0) > 0}"
    )
    memo.owners.pop(name, None)
    if retry == 0:
        raise OSError("the archive is not mounted")
    raise OSError("the archive is still not mounted")
