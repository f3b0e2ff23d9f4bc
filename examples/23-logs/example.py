"""Logs: an operator reads the accuracy and the errors that trainings print."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from re import Match
from typing import Annotated, Any

import fnop

NAME = "trainings.fnop.dev/name"
ACCURACY = "trainings.fnop.dev/accuracy"
# Marks on a pod: the time of the last line that a handler is done with.
READ, REPORTED = "trainings.fnop.dev/read", "trainings.fnop.dev/reported"


@dataclass(frozen=True)
class TrainingSpec:
    image: str
    epochs: Annotated[int, fnop.schema(minimum=1)] = 1
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of its pods."""


@dataclass(frozen=True)
class TrainingStatus:
    accuracy: str | None = None
    job: str | None = None
    """The uid of the Job whose accuracy it is."""


@fnop.definition("trainings.v1.fnop.dev")
@dataclass(frozen=True)
class Training:
    spec: TrainingSpec
    status: TrainingStatus = TrainingStatus()


def since_mark(annotations: fnop.Annotations, param: str, **_: Any) -> str:
    return annotations.get(param, "start")


def is_behind_mark(
    annotations: fnop.Annotations, time: datetime, param: str, **_: Any
) -> bool:
    """A restart reads the log from the mark on, and the line of the mark once more."""
    mark = annotations.get(param)
    return mark is None or time > datetime.fromisoformat(mark)


@fnop.on.log(
    "pods",
    labels={NAME: fnop.PRESENT},
    container="main",
    regex=r"accuracy is (\d+\.\d+)",
    since=since_mark,
    param=READ,
)
def accuracy(match: Match[str], time: datetime, patch: fnop.Patch, **_: Any) -> None:
    """Note it on the pod itself: if the API server refuses that, fnop tries again."""
    patch.meta["annotations"] = {ACCURACY: match[1], READ: time.isoformat()}


@fnop.on.log(
    "pods",
    labels={NAME: fnop.PRESENT},
    container="main",
    multiline=True,
    regex="^Traceback",
    since=since_mark,
    when=is_behind_mark,
    param=REPORTED,
)
def failed(line: str, time: datetime, patch: fnop.Patch, **_: Any) -> fnop.Effect:
    """Report the last line, which is the error; the others stay in the log."""
    patch.meta["annotations"] = {REPORTED: time.isoformat()}
    return fnop.warn("Failed", line.splitlines()[-1])


@fnop.index("pods", labels={NAME: fnop.PRESENT}, annotations={ACCURACY: fnop.PRESENT})
def accuracies(
    owner: fnop.Target | None, annotations: fnop.Annotations, **_: Any
) -> dict[str, tuple[str, str]]:
    """The accuracies of a Job's pods with their times, by the uid of the Job."""
    if owner is None or owner.uid is None:
        return {}
    return {owner.uid: (annotations[READ], annotations[ACCURACY])}


@fnop.maps("pods", to=Training, labels={NAME: fnop.PRESENT})
def training_of(labels: fnop.Labels, **_: Any) -> str:
    return labels[NAME]


@fnop.reconcile(Training, owns="jobs")
def training(
    spec: TrainingSpec,
    status: TrainingStatus,
    name: str,
    children: fnop.Children,
    accuracies: fnop.Index[str, tuple[str, str]] = fnop.INDEX,
    **_: Any,
) -> fnop.Desired:
    job = children["jobs"].get(name)
    uid = job.uid if job else None
    # A pod may go before its Job, as with its node: its accuracy stays.
    known = status.accuracy if uid == status.job else None
    told = accuracies.get(uid, ()) if uid else ()
    newest = max(told)[1] if told else known
    return fnop.desired(
        fnop.child(job_of(name, spec), on_immutable="replace"),
        status=TrainingStatus(accuracy=newest, job=uid),
    )


def job_of(name: str, spec: TrainingSpec) -> dict[str, Any]:
    labels = {NAME: name}
    container = {
        "name": "main",
        "image": spec.image,
        "args": ["--epochs", str(spec.epochs)],
    }
    template = {
        "metadata": {"labels": labels, "annotations": dict(spec.annotations)},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"template": template},
    }
