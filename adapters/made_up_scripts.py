"""The scripts that `fnop check` makes up: of an operator's objects and definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fnop.adapters.sampling import sampled
from fnop.core.api.catalogue import Catalogue
from fnop.core.api.resources import Resource
from fnop.core.handlers.handler import Handler
from fnop.core.handlers.program import Program
from fnop.core.handlers.roles import Family
from fnop.interpreters.check.changes import Change, Sort, at, changes_of
from fnop.interpreters.check.explore import Case, prepared
from fnop.interpreters.check.walks import MadeUp, Subject, scripts_for
from fnop.interpreters.scenario import catalogue_of

__all__ = ["made_up_scripts", "with_another_namespace"]

Manifest = Mapping[str, Any]
# The families of handlers that see each state of an object.
_SEEING = frozenset((Family.EVENT, Family.INDEX, Family.BACKGROUND, Family.LEVEL))
# Labels and annotations of tools, which users do not edit by hand.
_OF_TOOLS = ("kubernetes.io/", "k8s.io/", "fnop.dev/")


def made_up_scripts(case: Case, subjects: Sequence[Manifest]) -> MadeUp:
    """The scripts for the objects that an operator serves, in a case without a script.

    Raises `LookupError` for an object whose kind nobody serves, with what is missing,
    and `fnop.interpreters.actions.ActionRefused` where the cluster takes no object.
    """
    catalogue = catalogue_of(prepared(case).base)
    made = [_subject(case, catalogue, each) for each in subjects]
    kinds = {_kind(each.where) for each in made}
    watched = [
        _watched(case, catalogue, each)
        for each in case.given
        if _kind(_where(catalogue, each)) not in kinds
        and _handlers_of(case.program, catalogue.of_manifest(each))
    ]
    return scripts_for(case, made, watched)


def with_another_namespace(case: Case) -> Case:
    """The case with a namespace beside the usual one, for whom namespaces matter.

    It is there where handlers watch namespaces, and the author has given none; it has
    the labels that these handlers ask for.
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


def _kind(where: str) -> str:
    return where.partition("/")[0]


def _where(catalogue: Catalogue, manifest: Manifest) -> str:
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
    """An object with its changes, which are of interest if handlers see them."""
    where = _where(catalogue, manifest)
    handlers = _handlers_of(case.program, catalogue.of_manifest(manifest))
    changes: tuple[Change, ...] = ()
    if any(e.rule.compares or e.rule.family in _SEEING for e in handlers):
        chosen = {f"metadata.labels.{key}" for key, _ in _labels(handlers)}
        schema = _schema_of(case.definitions, manifest)
        changes = tuple(
            each
            for each in changes_of(manifest, schema, sampled)
            if each.path not in chosen and _is_of_users(each)
        )
    return Subject(manifest, where, changes)


def _watched(case: Case, catalogue: Catalogue, manifest: Manifest) -> Subject:
    """An object that handlers watch; a label that they ask for comes and goes."""
    handlers = _handlers_of(case.program, catalogue.of_manifest(manifest))
    schema = _schema_of(case.definitions, manifest)
    found = [each for each in changes_of(manifest, schema, sampled)]
    labels = (manifest.get("metadata") or {}).get("labels") or {}
    for key, value in _labels_wanted(handlers):
        if key not in labels:
            there, back = (at(("metadata", "labels", key), e) for e in (value, None))
            found.append(Change(Sort.SET, f"metadata.labels.{key}", there, back))
    where, name = _where(catalogue, manifest), manifest["metadata"].get("name")
    stays = where == f"namespaces/{case.namespace}" or name == case.namespace
    return Subject(manifest, where, tuple(filter(_is_of_users, found)), stays)


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
    """The schema of an object's version; `{}` where none is known."""
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
