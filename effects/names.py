"""Names that effects may carry: they come from specs that other people write.

A name becomes part of a request's path, and a selector decides which objects are
listed. A text that would lead a request elsewhere, or select more than intended, is
refused when the effect is built. So it fails the handler that has built it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fnop.effects.models import plain_scalar
from fnop.effects.regexes import regex
from fnop.effects.values import shown, type_name

__all__ = [
    "check_label",
    "check_made",
    "check_marks",
    "check_name",
    "check_namespace",
    "check_subresource",
    "check_webhooks_name",
    "field_selector",
    "is_label_name",
    "is_label_value",
    "label_selector",
]

# Visible ASCII without / % ? # and \. Kubernetes accepts more for some kinds
# (IsValidPathSegmentName), and at most 253 characters for most (DNS subdomains).
_NAME = regex(r"(?!\.{1,2}\Z)[!\"$&-.0->@-\[\]-~]{1,253}")
# DNS labels. Kubernetes: ValidateNamespaceName.
_NAMESPACE = regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBRESOURCE = regex(r"[a-z][a-z0-9-]{0,62}")
_LABEL = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = rf"{_PART}(\.{_PART})*"
_PREFIX = rf"(?=.{{1,253}}/){_DOMAIN}/"
_LABEL_KEY = regex(rf"({_PREFIX})?{_LABEL}")
# The prefix of an annotation's name may have capital letters (ValidateAnnotations).
_ANNOTATION_KEY = regex(rf"({_PREFIX})?{_LABEL}", re.IGNORECASE)
_LABEL_VALUE = regex(rf"({_LABEL})?")
_FIELD = regex(r"[A-Za-z][A-Za-z0-9._-]*")


def check_name(value: Any, where: str) -> None:
    """Raise `ValueError` for a text that cannot be the name of an object.

    >>> check_name("../secrets/x", "name")
    Traceback (most recent call last):
        ...
    ValueError: name '../secrets/x' cannot be a name: a name has 1 to 253 letters, ...
    """
    if not _is_match(_NAME, value):
        raise ValueError(
            f"{where} {shown(value)} cannot be a name: a name has 1 to 253 letters, "
            "digits and signs without /, \\, %, ? and #, and is not . or .."
        )


def check_namespace(value: Any, where: str) -> None:
    """Raise `ValueError` for a text that cannot be the name of a namespace."""
    if not _is_match(_NAMESPACE, value):
        raise ValueError(
            f"{where} {shown(value)} cannot be a namespace: one has 1 to 63 small "
            "letters and digits, with - between them"
        )


def check_subresource(value: Any, where: str) -> None:
    """Raise `ValueError` for a text that cannot be the name of a subresource."""
    if not _is_match(_SUBRESOURCE, value):
        raise ValueError(
            f"{where} {shown(value)} cannot be a subresource; give one such as "
            "'status' or 'scale'"
        )


def check_label(key: Any, value: Any) -> None:
    """Raise `ValueError` for a label to search for that no object can have."""
    if not _is_match(_LABEL_KEY, key) or not _is_match(_LABEL_VALUE, value):
        raise ValueError(
            f"labels: {shown(key)}: {shown(value)} cannot be a label, so no "
            "object has it; both have at most 63 letters, digits, -, _ and ., and the "
            "name perhaps a domain before it, as in example.com/tier"
        )


def is_label_name(value: Any) -> bool:
    """Whether a value can be the name of a label (Kubernetes: IsQualifiedName).

    >>> is_label_name("example.com/tier"), is_label_name("a b"), is_label_name("-a")
    (True, False, False)
    """
    return _is_match(_LABEL_KEY, value)


def is_label_value(value: Any) -> bool:
    """Whether a value can be the value of a label (Kubernetes: IsValidLabelValue).

    >>> is_label_value("prod"), is_label_value(""), is_label_value("a b")
    (True, True, False)
    """
    return _is_match(_LABEL_VALUE, value)


# A webhook is named <handler>.<configuration>: a domain of at most 253 characters, with
# three parts or more (IsFullyQualifiedName). The first part has up to 63.
_WEBHOOKS_NAME = regex(rf"(?=.{{1,189}}\Z){_PART}(\.{_PART})+")


def check_webhooks_name(value: Any, where: str) -> None:
    """Raise `ValueError` for a text that cannot name configurations of webhooks.

    >>> check_webhooks_name("hooks", "--webhook-name")
    Traceback (most recent call last):
        ...
    ValueError: --webhook-name 'hooks' cannot name webhook configurations: ...
    """
    if not _is_match(_WEBHOOKS_NAME, value):
        raise ValueError(
            f"{where} {shown(value)} cannot name webhook configurations: the API "
            "server takes a domain in lower case, with a dot in it and of at most "
            "189 characters, such as 'claims.example.com'"
        )


# The groups whose objects are named by DNS subdomains, all except Events (NameFn of
# each kind's validation). Other groups may be like rbac.authorization.k8s.io, which
# accepts any names. An aggregated API has its own rules.
_STRICT_GROUPS = frozenset(
    (
        "",
        "apps",
        "autoscaling",
        "batch",
        "coordination.k8s.io",
        "networking.k8s.io",
        "policy",
        "scheduling.k8s.io",
        "storage.k8s.io",
    )
)
_SUBDOMAIN = regex(rf"(?=.{{1,253}}\Z){_DOMAIN}")
# Servers before 1.34 accept no digit at the beginning of a Service's name (KEP-5311).
_LABEL_FORM = "has at most 63 small letters and digits, with - between them"
_OTHER_FORMS = {
    kind: (_NAMESPACE, f"a {kind} {_LABEL_FORM}") for kind in ("Service", "Namespace")
}


def check_made(manifest: Any, where: str) -> None:
    """Raise `ValueError` for a name, label or annotation that no server accepts.

    `manifest` describes an object to create. Names are checked for the kinds that are
    known to be strict (RFC 1123).

    >>> meta = {"name": "my_app"}
    >>> check_made({"apiVersion": "v1", "kind": "Pod", "metadata": meta}, "Create")
    Traceback (most recent call last):
        ...
    ValueError: Create: 'my_app' cannot be the name of a Pod: it has small letters, ...
    """
    metadata, kind = manifest.get("metadata"), manifest.get("kind")
    check_marks(metadata, where)
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    group = str(manifest.get("apiVersion")).rpartition("/")[0]
    if group not in _STRICT_GROUPS or kind == "Event" or not name:
        return
    form, rule = _SUBDOMAIN, "it has small letters, digits, - and ., such as my-app.v1"
    if group == "":
        form, rule = _OTHER_FORMS.get(str(kind), (form, rule))
    if not _is_match(form, name):
        raise ValueError(
            f"{where}: {shown(name)} cannot be the name of a {kind}: {rule}"
        )


def check_marks(metadata: Any, where: str) -> None:
    """Raise `ValueError` for labels and annotations that no server accepts.

    `metadata` comes from a manifest, or from a patch, whose None values remove them.

    >>> check_marks({"labels": {"n": 5}}, "Patch")
    Traceback (most recent call last):
        ...
    ValueError: Patch: the label 'n' must be a text, not 5; write str(...)
    """
    if metadata is None or not isinstance(metadata, Mapping):
        return
    for name, one in (("labels", "label"), ("annotations", "annotation")):
        marks = metadata.get(name)
        if marks is not None and not isinstance(marks, Mapping):
            raise ValueError(
                f"{where}: the {name} are a mapping of texts, not {type_name(marks)}"
            )
        for key, value in (marks or {}).items():
            value = plain_scalar(value)
            if value is not None and not isinstance(value, str):
                raise ValueError(
                    f"{where}: the {one} {shown(key)} must be a text, not "
                    f"{shown(value)}; write str(...)"
                )
            _check_mark(name, key, value, where)


def _check_mark(name: str, key: Any, value: str | None, where: str) -> None:
    form = _LABEL_KEY if name == "labels" else _ANNOTATION_KEY
    if not _is_match(form, key):
        raise ValueError(
            f"{where}: {shown(key)} in metadata.{name} cannot be a name: it has "
            "letters, digits, -, _ and ., 63 at most, and perhaps a domain before it, "
            "as in example.com/tier"
        )
    if name == "labels" and value is not None and not _is_match(_LABEL_VALUE, value):
        raise ValueError(
            f"{where}: the label {key} cannot have the value {shown(value)}: a value "
            "has letters, digits, -, _ and ., 63 at most; an annotation takes any text"
        )


def label_selector(labels: Mapping[str, str]) -> str:
    """The selector of objects with all of these labels.

    Raises `ValueError` for an impossible label: selectors have no escapes, and a comma
    would begin another term.

    >>> label_selector({"tier": "web", "app": "x"})
    'app=x,tier=web'
    """
    for key, value in labels.items():
        check_label(key, value)
    # Joined and not formatted: an f-string would contain the name of an enumeration's
    # member.
    return ",".join("=".join(each) for each in sorted(labels.items()))


def field_selector(fields: Mapping[str, str]) -> str:
    r"""The selector of objects with all of these fields (Kubernetes: EscapeValue).

    Raises `ValueError` for an impossible field.

    >>> field_selector({"metadata.name": "a,b=c"})
    'metadata.name=a\\,b\\=c'
    """
    for key, value in fields.items():
        if not _is_match(_FIELD, key) or not isinstance(value, str):
            raise ValueError(
                f"fields: {shown(key)}: {shown(value)} is not a field with its text; "
                "give a mapping such as {'status.phase': 'Running'}"
            )
    terms = ("=".join((key, _escape_value(fields[key]))) for key in sorted(fields))
    return ",".join(terms)


def _escape_value(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _is_match(form: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None
