"""Validation of the configurations of admission webhooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from fnop.interpreters.cluster.schema.cel import ADVICE, condition_fault
from fnop.interpreters.cluster.validation.faults import (
    bad,
    duplicate,
    forbidden,
    one_of,
    required,
)
from fnop.interpreters.cluster.validation.field_rules import (
    port_number,
    qualified,
    service_name,
)
from fnop.interpreters.cluster.validation.selector_rules import selector_faults
from fnop.interpreters.cluster.values.metadata import NOT_SUBDOMAIN, SUBDOMAIN
from fnop.interpreters.cluster.values.objects import Object
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = ["hook_faults"]

Spec = dict[str, Any]

CHOICES = (
    ("failurePolicy", ("Fail", "Ignore")),
    ("matchPolicy", ("Equivalent", "Exact")),
    ("sideEffects", ("None", "NoneOnDryRun")),
    ("reinvocationPolicy", ("IfNeeded", "Never")),
)
OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
REVIEWS = ("v1", "v1beta1")


def hook_faults(obj: Object) -> Iterator[Fault]:
    """Yield the faults of a configuration of admission webhooks."""
    names = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        yield from _name(f"{path}.name", name)
        for place, rule in enumerate(hook.get("rules") or ()):
            yield from _rule(rule, f"{path}.rules[{place}]")
        yield from _choices(hook, path)
        for part in ("namespaceSelector", "objectSelector"):
            yield from selector_faults(hook.get(part), f"{path}.{part}")
        yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
        conditions = hook.get("matchConditions") or ()
        yield from _conditions(conditions, f"{path}.matchConditions")
        versions = hook.get("admissionReviewVersions") or ()
        yield from _versions(versions, f"{path}.admissionReviewVersions")
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)


def _name(field: str, name: str) -> Iterator[Fault]:
    if not name:
        yield required(field)
    elif not SUBDOMAIN.fullmatch(name):
        yield bad(field, name, NOT_SUBDOMAIN)
    elif name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        yield bad(field, name, why)


def _choices(hook: Spec, path: str) -> Iterator[Fault]:
    for name, known in CHOICES:
        if name in hook:
            yield from one_of(f"{path}.{name}", hook[name], known)
        elif name == "sideEffects":
            why = f"must specify one of {', '.join(known)}"
            yield required(f"{path}.{name}", why)
    seconds = hook.get("timeoutSeconds", 10)
    if not 1 <= seconds <= 30:
        why = "the timeout value must be between 1 and 30 seconds"
        yield bad(f"{path}.timeoutSeconds", seconds, why)


def _versions(versions: Iterable[str], path: str) -> Iterator[Fault]:
    given = [*versions]
    if not given:
        yield required(path, f"must specify one of {', '.join(REVIEWS)}")
        return
    for index, version in enumerate(given):
        if version in given[:index]:
            yield bad(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from service_name(f"{path}[{index}]", version)
    if not {*given} & {*REVIEWS}:
        why = f"must include at least one of {', '.join(REVIEWS)}"
        yield bad(path, given, why)


# ------------------------------------------------------------- match conditions

MOST_CONDITIONS = 64


def _conditions(conditions: Sequence[Spec], path: str) -> Iterator[Fault]:
    if len(conditions) > MOST_CONDITIONS:
        message = (
            f"Too many: {len(conditions)}: must have at most {MOST_CONDITIONS} items"
        )
        yield Fault(path, "FieldValueTooMany", message)
    names = set()
    for index, one in enumerate(conditions):
        field, name = f"{path}[{index}]", one.get("name") or ""
        yield from _expression(f"{field}.expression", one.get("expression") or "")
        if name:
            yield from qualified(f"{field}.name", name)
        else:
            yield required(f"{field}.name")
        if name and name in names:
            yield duplicate(f"{field}.name", name)
        names.add(name)


def _expression(field: str, text: str) -> Iterator[Fault]:
    if not text.strip():
        yield required(field)
        return
    try:
        problem = condition_fault(text)
    except ImportError:
        yield forbidden(field, ADVICE)
        return
    if problem:
        yield bad(field, text, problem)


# ----------------------------------------------------------------------- rules


def _rule(rule: Spec, path: str) -> Iterator[Fault]:
    operations = rule.get("operations") or ()
    yield from _wildcard_faults(operations, f"{path}.operations", "operations")
    for index, operation in enumerate(operations):
        yield from one_of(f"{path}.operations[{index}]", operation, OPERATIONS)
    groups = rule.get("apiGroups") or ()
    yield from _wildcard_faults(groups, f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or ()
    yield from _wildcard_faults(versions, f"{path}.apiVersions", "API versions")
    for index, version in enumerate(versions):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resources(rule.get("resources") or (), f"{path}.resources")
    if "scope" in rule:
        yield from one_of(f"{path}.scope", rule["scope"], SCOPES)


def _wildcard_faults(values: Any, path: str, what: str) -> Iterator[Fault]:
    """Refuse an empty list, and other values next to "*"."""
    if not values:
        yield required(path)
    if len(values) > 1 and "*" in values:
        yield bad(path, values, f"if '*' is present, must not specify other {what}")


def _resources(resources: Any, path: str) -> Iterator[Fault]:
    if not resources:
        yield required(path)
    of_resource: set[str] = set()
    of_subresource: set[str] = set()
    is_plain = False
    for index, text in enumerate(resources):
        field = f"{path}[{index}]"
        if not text:
            yield required(field)
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            is_plain = text != "*"
            continue
        if resource in of_resource:
            why = f"if '{resource}/*' is present, must not specify {text}"
            yield bad(field, text, why)
        if subresource in of_subresource:
            why = f"if '*/{subresource}' is present, must not specify {text}"
            yield bad(field, text, why)
        if subresource == "*":
            of_resource.add(resource)
        if resource == "*":
            of_subresource.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        why = "if '*/*' is present, must not specify other resources"
        yield bad(path, resources, why)
    if "*" in resources and is_plain:
        why = "if '*' is present, must not specify other resources without subresources"
        yield bad(path, resources, why)


# --------------------------------------------------------------------- clients


def _client(client: Spec, path: str) -> Iterator[Fault]:
    if ("url" in client) == ("service" in client):
        yield required(path, "exactly one of url or service is required")
    elif "url" in client:
        yield from _url(client["url"], f"{path}.url")
    else:
        yield from _service(client["service"], f"{path}.service")


FORM = "; desired format: https://host[/path]"


def _url(text: str, field: str) -> Iterator[Fault]:
    parts = urlsplit(text)
    if problem := _url_problem(text, parts.netloc):
        why = f"url must be a valid URL: parse {quoted(text)}: {problem}{FORM}"
        yield required(field, why)
        return
    if parts.scheme != "https":
        why = f"'https' is the only allowed URL scheme{FORM}"
        yield bad(field, parts.scheme, why)
    if not parts.netloc:
        yield bad(field, parts.netloc, f"host must be specified{FORM}")
    if parts.username is not None:
        user = parts.netloc.rpartition("@")[0]
        yield bad(field, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield bad(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        why = "query parameters are not permitted in the URL"
        yield bad(field, parts.query, why)


PORT = re.compile(r"(?:\[[^\]]*\]|[^:]*)(:.*)?")


def _url_problem(text: str, host: str) -> str:
    """The reason why Go cannot parse a URL; "" if it can, or for other reasons."""
    if text.startswith(":"):
        return "missing protocol scheme"
    if " " in host:
        return 'invalid character " " in host name'
    found = PORT.fullmatch(host.rpartition("@")[2])
    port = (found and found[1]) or ""
    if port and not re.fullmatch(":[0-9]*", port):
        return f"invalid port {quoted(port)} after host"
    return ""


def _service(service: Spec, path: str) -> Iterator[Fault]:
    # The real server confuses the two.
    for name, told in (("name", "namespace"), ("namespace", "name")):
        if not service.get(name):
            yield required(f"{path}.{told}", f"service {told} is required")
    port = service.get("port", 443)
    for fault in port_number("", port):
        why = fault.message.partition(f"{port}: ")[2]
        yield bad(f"{path}.port", port, f"port is not valid: {why}")
    place = service.get("path")
    if place in (None, "", "/"):
        return
    field = f"{path}.path"
    if not place.startswith("/"):
        yield bad(field, place, "must start with a '/'")
    steps = place.removesuffix("/")[1:].split("/")
    for index, step in enumerate(steps):
        if not step:
            yield bad(field, place, f"segment[{index}] may not be empty")
        elif not SUBDOMAIN.fullmatch(step):
            yield bad(field, place, f"segment[{index}]: {NOT_SUBDOMAIN}")
