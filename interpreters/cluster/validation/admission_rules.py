"""Validation of the configurations of admission webhooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from fnop.core.kubernetes.names import SUBDOMAIN
from fnop.interpreters.cluster.schema.cel import ADVICE, condition_fault
from fnop.interpreters.cluster.validation.faults import bad, forbidden, required
from fnop.interpreters.cluster.validation.field_rules import port_number, service_name
from fnop.interpreters.cluster.validation.rules import Rule, Spec, must
from fnop.interpreters.cluster.validation.selector_rules import label_selector
from fnop.interpreters.cluster.validation.tables import needed, table, unique
from fnop.interpreters.cluster.values.metadata import NOT_SUBDOMAIN
from fnop.interpreters.cluster.values.status import Fault, quoted

__all__ = ["HOOKS"]


def _hook_name(name: str, path: str) -> Iterator[Fault]:
    if not SUBDOMAIN.fullmatch(name):
        yield bad(path, name, NOT_SUBDOMAIN)
    elif name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        yield bad(path, name, why)


REVIEWS = ("v1", "v1beta1")


def _versions(versions: list[str], path: str) -> Iterator[Fault]:
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield bad(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from service_name(version, f"{path}[{index}]")
    if not {*versions} & {*REVIEWS}:
        why = f"must include at least one of {', '.join(REVIEWS)}"
        yield bad(path, versions, why)


# ------------------------------------------------------------- match conditions

MOST_CONDITIONS = 64


def _few(conditions: list[Spec] | None, path: str) -> Iterator[Fault]:
    count = len(conditions or ())
    if count > MOST_CONDITIONS:
        message = f"Too many: {count}: must have at most {MOST_CONDITIONS} items"
        yield Fault(path, "FieldValueTooMany", message)


def _expression(text: str | None, path: str) -> Iterator[Fault]:
    if not text or not text.strip():
        yield required(path)
        return
    try:
        problem = condition_fault(text)
    except ImportError:
        yield forbidden(path, ADVICE)
        return
    if problem:
        yield bad(path, text, problem)


# ----------------------------------------------------------------------- rules


def _star_alone(what: str) -> Rule:
    """The rule that a list has no other values next to "*"."""
    why = f"if '*' is present, must not specify other {what}"
    return must(lambda values: len(values) == 1 or "*" not in values, why)


def _resources(resources: Any, path: str) -> Iterator[Fault]:
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


def _client(client: Spec | None, path: str) -> Iterator[Fault]:
    client = client or {}
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
    for fault in port_number(port, ""):
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


# ----------------------------------------------------------------------- webhooks

HOOK_RULE = table(
    ("operations", needed(_star_alone("operations"))),
    "operations[]: * | CONNECT | CREATE | DELETE | UPDATE",
    ("apiGroups", needed(_star_alone("API groups"))),
    ("apiVersions", needed(_star_alone("API versions"))),
    "apiVersions[]: needed",
    ("resources", needed(_resources)),
    "scope: given; * | Cluster | Namespaced",
)
HOOK = table(
    ("name", needed(_hook_name)),
    ("rules[]", HOOK_RULE),
    "failurePolicy: given; Fail | Ignore",
    "matchPolicy: given; Equivalent | Exact",
    "sideEffects: present (must specify one of None, NoneOnDryRun); "
    "None | NoneOnDryRun",
    "reinvocationPolicy: given; IfNeeded | Never",
    "timeoutSeconds: 1..30 (the timeout value must be between 1 and 30 seconds)",
    ("namespaceSelector, objectSelector", label_selector),
    ("clientConfig", _client),
    ("matchConditions", _few),
    (
        "matchConditions[]",
        table(("expression", _expression), "name: needed; qualified name"),
        unique("name"),
    ),
    (
        "admissionReviewVersions",
        needed(_versions, why=f"must specify one of {', '.join(REVIEWS)}"),
    ),
)
HOOKS = table(("webhooks[]", HOOK, unique("name")))
