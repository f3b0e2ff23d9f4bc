"""The scripts that `fnop check` generates for an operator's objects and definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from fnop.adapters.testing.sampling import sampled, texts_like
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.filters import ABSENT
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.log_selection import LogSelection
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, prepared
from fnop.interpreters.check.campaign.walks import (
    MadeUp,
    Subject,
    scripts_for,
    scripts_of_the_cluster,
)
from fnop.interpreters.check.scripts.changes import Change, Sort, at, changes_of
from fnop.interpreters.check.state.worlds import is_builtin
from fnop.interpreters.simulation.actions import WriteLog
from fnop.interpreters.simulation.scenario import catalogue_of

__all__ = ["made_up_scripts", "pod_for", "with_a_pod", "with_another_namespace"]

Manifest = Mapping[str, Any]
# The families of handlers that see each state of an object.
_SEEING = frozenset(
    (
        *(Family.EVENT, Family.LOG, Family.INDEX, Family.BACKGROUND, Family.RECONCILER),
        Family.ADMISSION,
    )
)
# Labels and annotations of tools, which users do not edit by hand.
_OF_TOOLS = ("kubernetes.io/", "k8s.io/", "fnop.dev/")


def made_up_scripts(case: Case, subjects: Sequence[Manifest]) -> MadeUp:
    """The scripts for the objects that an operator serves, in a case without a script.

    Raises `LookupError` with the missing part if the cluster does not serve an object's
    kind. Raises `fnop.interpreters.simulation.actions.ActionRefused` if the cluster
    accepts no object.
    """
    catalogue = catalogue_of(prepared(case).base)
    made = [_subject(case, catalogue, each) for each in subjects]
    if not made:
        return MadeUp(tuple(scripts_of_the_cluster(case, ())))
    beside = [each for each in case.given if each not in subjects]
    if any(_is_custom(catalogue, each) for each in subjects):
        beside += [each for each in subjects if not _is_custom(catalogue, each)]
    labels = [*_selectors_in([each.get("spec") for each in subjects])]
    labels += chain.from_iterable(_labels_on(each).items() for each in beside)
    found = [_unserved_subject(case, catalogue, each, labels) for each in beside]
    pods = [each for each in (*case.given, *subjects) if each.get("kind") == "Pod"]
    return scripts_for(case, made, found, [*_logs_of(case.program, pods)])


def with_a_pod(case: Case, subjects: Sequence[Manifest]) -> Case:
    """The case with a pod, for handlers of logs without a pod by the author."""
    if any(each.get("kind") == "Pod" for each in (*case.given, *subjects)):
        return case
    pod = pod_for(case.program, subjects)
    return case if pod is None else case._replace(given=(*case.given, pod))


def pod_for(
    program: Program, subjects: Sequence[Manifest] = ()
) -> dict[str, Any] | None:
    """A pod whose logs handlers read; None if there are no such handlers.

    It has the labels that these handlers ask for. A label that may have any value has
    the name of the object that the operator serves.
    """
    handlers = [each for each in program.handlers if each.log is not None]
    if not handlers:
        return None
    name = next((str(each["metadata"].get("name")) for each in subjects), "x")
    labels = {
        key: wanted if isinstance(wanted, str) else name
        for key, wanted in _labels(handlers)
        if wanted is not ABSENT
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "writes", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "main"}]},
    }


def _logs_of(program: Program, pods: Sequence[Manifest]) -> Iterator[WriteLog]:
    """The lines that pods write: two that each handler wants, and another."""
    for pod in pods:
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        names = [str(each.get("name")) for each in spec.get("containers") or ()]
        for handler in program.handlers:
            log = handler.log
            taken = [each for each in names if log is not None and log.takes(each)]
            if log is None or not taken:
                continue
            one, two = _lines_for(log)
            where, place = f"pods/{meta.get('name')}", meta.get("namespace")
            yield WriteLog(where, f"nothing\n{one}", taken[0], place)
            yield WriteLog(where, two, taken[0], place)


def _lines_for(log: LogSelection) -> tuple[str, str]:
    """Two lines that a handler wants, as far as its pattern shows."""
    if log.regex is None:
        return "one line", "another line"
    found = texts_like(log.regex.pattern, log.regex.flags)
    fitting = [each for each in found if log.regex.search(each) and "\n" not in each]
    one, two, *_ = (*dict.fromkeys(fitting), "one line", "another line")
    return one, two


def with_another_namespace(case: Case) -> Case:
    """The case with a second namespace, for handlers that depend on namespaces.

    It is added if handlers watch namespaces, and the author has given none. It has the
    labels that these handlers ask for.
    """
    catalogue = catalogue_of(prepared(case).base)
    manifest = {"apiVersion": "v1", "kind": "Namespace"}
    handlers = _handlers_of(case.program, catalogue.of_manifest(manifest))
    kinds = {each.get("kind") for each in (*case.given, *case.definitions)}
    if not handlers or "Namespace" in kinds:
        return case
    meta: dict[str, Any] = {"name": "another"}
    labels = dict(_labels_wanted(handlers))
    if labels:
        meta["labels"] = labels
    return case._replace(given=(*case.given, {**manifest, "metadata": meta}))


def _alias_of(catalogue: Catalogue, manifest: Manifest) -> str:
    """The name of an object as kind/name. Raises `LookupError`."""
    resource = catalogue.of_manifest(manifest)
    if resource is None:
        absence = catalogue.absence_of(manifest, "the cluster")
        raise LookupError(f"{absence}; give its definition with --crd")
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.plural}{group}/{manifest['metadata']['name']}"


def _handlers_of(program: Program, resource: Resource | None) -> list[Handler]:
    """The handlers whose kinds include one."""
    return [
        handler
        for handler in program.handlers
        if resource is not None
        and handler.selector is not None
        and handler.selector.matches(resource)
    ]


def _subject(case: Case, catalogue: Catalogue, manifest: Manifest) -> Subject:
    """An object with its changes, which matter if handlers see them."""
    where = _alias_of(catalogue, manifest)
    handlers = _handlers_of(case.program, catalogue.of_manifest(manifest))
    changes: tuple[Change, ...] = ()
    follows = any(e.rule.compares or e.rule.family in _SEEING for e in handlers)
    if follows:
        chosen = {f"metadata.labels.{key}" for key, _ in _labels(handlers)}
        schema = _schema_of(case.definitions, manifest)
        changes = tuple(
            each
            for each in changes_of(manifest, schema, sampled)
            if each.path not in chosen and _is_of_users(each)
        )
    return Subject(manifest, where, changes, followed=follows)


def _unserved_subject(
    case: Case,
    catalogue: Catalogue,
    manifest: Manifest,
    labels: Sequence[tuple[str, str]],
) -> Subject:
    """An object that is not served; a requested label is added and removed."""
    handlers = _handlers_of(case.program, catalogue.of_manifest(manifest))
    schema = _schema_of(case.definitions, manifest)
    found = [*changes_of(manifest, schema, sampled)]
    known = _labels_on(manifest)
    for key, value in dict((*labels, *_labels_wanted(handlers))).items():
        if key not in known:
            there, back = (at(("metadata", "labels", key), e) for e in (value, None))
            found.append(Change(Sort.SET, f"metadata.labels.{key}", there, back))
    where, name = _alias_of(catalogue, manifest), manifest["metadata"].get("name")
    stays = manifest not in case.given or name == case.namespace
    changes = tuple(filter(_is_of_users, found))
    return Subject(manifest, where, changes, stays, bool(handlers))


def _labels_on(manifest: Manifest) -> Mapping[str, str]:
    labels: Mapping[str, str] = (manifest.get("metadata") or {}).get("labels") or {}
    return labels


def _selectors_in(found: Any) -> Iterator[tuple[str, str]]:
    """The labels by which an object may select others: texts by names.

    >>> [*_selectors_in({"namespaceLabels": {"tier": "dev"}, "size": 1})]
    [('tier', 'dev')]
    """
    if isinstance(found, list):
        for each in found:
            yield from _selectors_in(each)
    if isinstance(found, Mapping):
        for name, each in found.items():
            if isinstance(each, Mapping) and _SELECTING.search(name):
                yield from ((k, v) for k, v in each.items() if isinstance(v, str))
            yield from _selectors_in(each)


_SELECTING = re.compile("label|select|match", re.IGNORECASE)


def _is_custom(catalogue: Catalogue, manifest: Manifest) -> bool:
    resource = catalogue.of_manifest(manifest)
    return resource is not None and not is_builtin(resource.group)


def _is_of_users(change: Change) -> bool:
    """Whether users make such a change, and no tool does."""
    return not any(each in change.path for each in _OF_TOOLS)


def _labels(handlers: Sequence[Handler]) -> Iterator[tuple[str, Any]]:
    for handler in handlers:
        yield from handler.filters.labels


def _labels_wanted(handlers: Sequence[Handler]) -> Iterator[tuple[str, str]]:
    """The labels that handlers ask for, with a value for each."""
    for key, wanted in _labels(handlers):
        yield key, wanted if isinstance(wanted, str) else "x"


def _schema_of(definitions: Sequence[Manifest], manifest: Manifest) -> Manifest:
    """The schema of an object's version; `{}` if none is known."""
    group, _, name = str(manifest.get("apiVersion")).rpartition("/")
    for each in definitions:
        spec = each["spec"]
        if (spec["group"], spec["names"]["kind"]) != (group, manifest.get("kind")):
            continue
        for version in spec["versions"]:
            if version["name"] == name:
                schema = (version.get("schema") or {}).get("openAPIV3Schema")
                return dict(schema or {})
    return {}
