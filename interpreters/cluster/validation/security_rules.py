"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fnop.interpreters.cluster.validation.faults import bad, duplicate, one_of, required
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["context_faults", "pod_context_faults"]

Spec = dict[str, Any]

MOST = 2**31 - 1
SYSCTL = re.compile(
    r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)


def _ids(context: Spec, path: str, *names: str) -> Iterator[Fault]:
    for name in names:
        number = context.get(name, 0)
        if not 0 <= number <= MOST:
            why = f"must be between 0 and {MOST}, inclusive"
            yield bad(f"{path}.{name}", number, why)


def pod_context_faults(context: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of the security context of a pod."""
    yield from _ids(context, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, number in enumerate(context.get("supplementalGroups") or ()):
        if not 0 <= number <= MOST:
            why = f"must be between 0 and {MOST}, inclusive"
            yield bad(f"{path}.supplementalGroups[{index}]", number, why)
    seen = set()
    for index, one in enumerate(context.get("sysctls") or ()):
        field, name = f"{path}.sysctls[{index}].name", one.get("name", "")
        if not name:
            yield required(field)
        elif len(name) > 253 or not SYSCTL.fullmatch(name):
            yield bad(field, name, "must have at most 253 characters and match a name")
        elif name in seen:
            yield duplicate(field, name)
        seen.add(name)
    if "fsGroupChangePolicy" in context:
        known = ("Always", "OnRootMismatch")
        policy = context["fsGroupChangePolicy"]
        yield from one_of(f"{path}.fsGroupChangePolicy", policy, known)
    yield from _common_faults(context, path)


def context_faults(context: Spec, path: str) -> Iterator[Fault]:
    """Yield the faults of the security context of a container."""
    yield from _ids(context, path, "runAsUser", "runAsGroup")
    if "procMount" in context:
        known = ("Default", "Unmasked")
        yield from one_of(f"{path}.procMount", context["procMount"], known)
    yield from _common_faults(context, path)
    if context.get("allowPrivilegeEscalation") is not False:
        return
    field = f"{path}.allowPrivilegeEscalation"
    if context.get("privileged"):
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield bad(field, False, why)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        why = (
            "cannot set `allowPrivilegeEscalation` to false and "
            "`capabilities.Add` CAP_SYS_ADMIN"
        )
        yield bad(field, False, why)


def _common_faults(context: Spec, path: str) -> Iterator[Fault]:
    if (profile := context.get("seccompProfile")) is not None:
        yield from _seccomp(profile, f"{path}.seccompProfile")
    options = context.get("windowsOptions") or {}
    if "runAsUserName" in options:
        name, field = options["runAsUserName"], f"{path}.windowsOptions.runAsUserName"
        if not name:
            yield bad(field, name, "runAsUserName cannot be an empty string")
    name = options.get("gmsaCredentialSpecName")
    if name is not None and not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name):
        field = f"{path}.windowsOptions.gmsaCredentialSpecName"
        yield bad(field, name, "must be the name of an object")
    if options.get("gmsaCredentialSpec") == "":
        field = f"{path}.windowsOptions.gmsaCredentialSpec"
        yield bad(field, "", "gmsaCredentialSpec cannot be an empty string")


def _seccomp(profile: Spec, path: str) -> Iterator[Fault]:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    else:
        known = ("Localhost", "RuntimeDefault", "Unconfined")
        yield from one_of(f"{path}.type", kind, known)
    field = f"{path}.localhostProfile"
    if kind == "Localhost":
        if not local:
            yield required(field, "must be set when seccomp type is Localhost")
    elif local is not None:
        yield bad(field, local, "can only be set when seccomp type is Localhost")
