"""ObjectMeta: its fields and their validation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import orjson

from fnop.core.kubernetes.names import (
    LABEL,
    LABEL_VALUE,
    QUALIFIED,
    SERVICE,
    SUBDOMAIN,
)
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = [
    "METADATA",
    "NEVER_STORED",
    "STANDARD_FINALIZERS",
    "clean_metadata",
    "finalizer_faults",
    "is_text_map",
    "metadata_faults",
    "name_faults",
]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def is_text_map(value: Any) -> bool:
    """Whether a JSON value is a Go map[string]string."""
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


# The fields of metav1.ObjectMeta; anything else in metadata is dropped.
METADATA: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "generateName": _is_text,
    "namespace": _is_text,
    "selfLink": _is_text,
    "uid": _is_text,
    "resourceVersion": _is_text,
    "generation": _is_number,
    "creationTimestamp": _is_text,
    "deletionTimestamp": _is_text,
    "deletionGracePeriodSeconds": _is_number,
    "labels": is_text_map,
    "annotations": is_text_map,
    "ownerReferences": _is_list,
    "finalizers": _is_texts,
    "managedFields": _is_objects,
}
NEVER_STORED = frozenset(("selfLink", "managedFields"))


def clean_metadata(raw: Any) -> Any:
    """The metadata of an embedded object, without fields of a wrong type."""
    if not isinstance(raw, dict):
        return raw
    kept = {
        name: value
        for name, value in raw.items()
        if name in METADATA and METADATA[name](value)
    }
    return raw if len(kept) == len(raw) else kept


NOT_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
    "characters, '-' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NOT_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
    "or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
    "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
NOT_SERVICE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character "
    "(e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NOT_QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
    "'123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NOT_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, "
    "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
    "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
# Names that become DNS labels or path segments have rules of their own.
NAME_RULES: dict[tuple[str, str], tuple[re.Pattern[str], int, str]] = {
    ("", "namespaces"): (LABEL, 63, NOT_LABEL),
    ("", "services"): (SERVICE, 63, NOT_SERVICE),
}
PATH_SEGMENT_NAMES = frozenset(
    (
        ("", "events"),
        ("policy", "poddisruptionbudgets"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "rolebindings"),
        ("rbac.authorization.k8s.io", "roles"),
    )
)


@lru_cache(maxsize=4096)
def name_faults(resource: tuple[str, str], name: str) -> tuple[str, ...]:
    """The faults in the name of an object of a group and plural, as texts."""
    if resource in PATH_SEGMENT_NAMES:
        if name in (".", ".."):
            return (f"may not be '{name}'",)
        return tuple(f"may not contain '{c}'" for c in "/%" if c in name)
    pattern, limit, text = NAME_RULES.get(resource, (SUBDOMAIN, 253, NOT_SUBDOMAIN))
    faults = []
    if len(name) > limit:
        faults.append(f"must be no more than {limit} characters")
    if not pattern.fullmatch(name):
        faults.append(text)
    return tuple(faults)


@lru_cache(maxsize=4096)
def key_faults(key: str) -> tuple[str, ...]:
    """The faults in a qualified name (a label's key, for one), as texts."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        elif "/" in prefix:
            return (
                f"a qualified name {NOT_QUALIFIED.removeprefix('name part ')} with an "
                "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            )
        else:
            if len(prefix) > 253:
                faults.append("prefix part must be no more than 253 characters")
            if not SUBDOMAIN.fullmatch(prefix):
                faults.append(f"prefix part {NOT_SUBDOMAIN}")
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 characters")
    if not QUALIFIED.fullmatch(name):
        faults.append(NOT_QUALIFIED)
    return tuple(faults)


@lru_cache(maxsize=4096)
def value_faults(value: str) -> tuple[str, ...]:
    """The faults in a label's value, as texts."""
    faults = []
    if len(value) > 63:
        faults.append("must be no more than 63 characters")
    if not LABEL_VALUE.fullmatch(value):
        faults.append(NOT_LABEL_VALUE)
    return tuple(faults)


def _invalid_fault(field: str, value: str, why: str) -> Fault:
    return Fault(field, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}")


def metadata_faults(metadata: dict[str, Any]) -> Iterator[Fault]:
    """Yield the faults of labels, annotations, finalizers and owner references."""
    for key, value in metadata.get("labels", {}).items():
        for why in key_faults(key):
            yield _invalid_fault("metadata.labels", key, why)
        for why in value_faults(value):
            yield _invalid_fault("metadata.labels", value, why)
    if (generation := metadata.get("generation", 0)) < 0:
        why = f"Invalid value: {generation}: must be greater than or equal to 0"
        yield Fault("metadata.generation", "FieldValueInvalid", why)
    # Annotation keys are checked in lower case, because of old objects.
    for key in metadata.get("annotations", ()):
        for why in key_faults(key.lower()):
            yield _invalid_fault("metadata.annotations", key, why)
    yield from _size_faults(metadata.get("annotations"))
    if references := metadata.get("ownerReferences"):
        yield from _references_faults(references)
    for finalizer in metadata.get("finalizers", ()):
        for why in key_faults(finalizer):
            yield _invalid_fault("metadata.finalizers", finalizer, why)


MOST_ANNOTATIONS = 256 * 1024


def _size_faults(annotations: dict[str, str] | None) -> Iterator[Fault]:
    """Yield a fault if all annotations together are too large."""
    if annotations and _bytes_of(annotations) > MOST_ANNOTATIONS:
        message = f"Too long: may not be more than {MOST_ANNOTATIONS} bytes"
        yield Fault("metadata.annotations", "FieldValueTooLong", message)


def _bytes_of(texts: dict[str, str]) -> int:
    size = sum(map(len, texts)) + sum(map(len, texts.values()))
    if size > MOST_ANNOTATIONS or size * 4 <= MOST_ANNOTATIONS:
        return size  # no letter has more than four bytes
    return sum(len(key.encode()) + len(text.encode()) for key, text in texts.items())


# Kinds whose validators only have the general rules.
ANY_FINALIZERS = frozenset(
    (
        ("", "events"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ("coordination.k8s.io", "leases"),
        ("policy", "poddisruptionbudgets"),
    )
)
STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def finalizer_faults(
    group: str, plural: str, metadata: dict[str, Any]
) -> Iterator[Fault]:
    """Yield finalizers without a prefix that are not standard ones."""
    if (group, plural) in ANY_FINALIZERS:
        return
    for index, name in enumerate(metadata.get("finalizers", ())):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield _invalid_fault(f"metadata.finalizers[{index}]", name, why)


def _references_faults(references: list[dict[str, Any]]) -> Iterator[Fault]:
    """Yield the faults of owner references; one at most may be the controller."""
    first = ""
    for reference in references:
        yield from _reference_faults(reference)
        if not reference.get("controller"):
            continue
        name = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if first:
            why = (
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {first} and {name}'
            )
            shown = orjson.dumps([*map(_shown_reference, references)]).decode()
            message = f"Invalid value: {shown}: {why}"
            yield Fault("metadata.ownerReferences", "FieldValueInvalid", message)
        first = first or name


def _shown_reference(reference: dict[str, Any]) -> dict[str, Any]:
    """A reference in the order of its fields in Go."""
    texts = {k: reference.get(k, "") for k in ("apiVersion", "kind", "name", "uid")}
    given = ("controller", "blockOwnerDeletion")
    return {**texts, **{k: reference[k] for k in given if reference.get(k) is not None}}


def _reference_faults(reference: dict[str, Any]) -> Iterator[Fault]:
    version = reference.get("apiVersion", "")
    if version and (version.count("/") > 1 or version.endswith("/")):
        why = "version must not be empty"
        yield _invalid_fault("metadata.ownerReferences.apiVersion", version, why)
    if version == "v1" and reference.get("kind") == "Event":
        shown = orjson.dumps(_shown_reference(reference)).decode()
        why = "/v1, Kind=Event is disallowed from being an owner"
        message = f"Invalid value: {shown}: {why}"
        yield Fault("metadata.ownerReferences", "FieldValueInvalid", message)
    for name, why in (
        ("apiVersion", "version must not be empty"),
        ("kind", "must not be empty"),
        ("name", "must not be empty"),
        ("uid", "must not be empty"),
    ):
        if not reference.get(name):
            yield _invalid_fault(f"metadata.ownerReferences.{name}", "", why)
