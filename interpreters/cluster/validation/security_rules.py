"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fnop.interpreters.cluster.validation.faults import bad, duplicate, required
from fnop.interpreters.cluster.validation.rules import Spec, must
from fnop.interpreters.cluster.validation.tables import Among, table
from fnop.interpreters.cluster.values.status import Fault

__all__ = ["CONTEXT", "POD_CONTEXT"]

SYSCTL = re.compile(
    r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
)


def _sysctl(one: Spec, path: str, seen: set[str]) -> Iterator[Fault]:
    field, name = f"{path}.name", one.get("name", "")
    if not name:
        yield required(field)
    elif len(name) > 253 or not SYSCTL.fullmatch(name):
        yield bad(field, name, "must have at most 253 characters and match a name")
    elif name in seen:
        yield duplicate(field, name)
    seen.add(name)


def _local_profile(profile: Spec, path: str) -> Iterator[Fault]:
    local, field = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") == "Localhost":
        if not local:
            yield required(field, "must be set when seccomp type is Localhost")
    elif local is not None:
        yield bad(field, local, "can only be set when seccomp type is Localhost")


SECCOMP = table(
    "type: needed (type is required when seccompProfile is set); "
    "Localhost | RuntimeDefault | Unconfined",
    _local_profile,
)
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
COMMON = table(
    ("seccompProfile?", SECCOMP),
    "windowsOptions.runAsUserName: true (runAsUserName cannot be an empty string)",
    (
        "windowsOptions.gmsaCredentialSpecName",
        must(NAME.fullmatch, "must be the name of an object"),
    ),
    "windowsOptions.gmsaCredentialSpec: true "
    "(gmsaCredentialSpec cannot be an empty string)",
)
POD_CONTEXT = table(
    "fsGroup, runAsUser, runAsGroup, supplementalGroups[]: int32",
    ("sysctls[]", Among(_sysctl)),
    "fsGroupChangePolicy: given; Always | OnRootMismatch",
    COMMON,
)


def _no_escalation(context: Spec | None, path: str) -> Iterator[Fault]:
    context = context or {}
    if context.get("allowPrivilegeEscalation") is not False:
        return
    field = f"{path}.allowPrivilegeEscalation"
    why = "cannot set `allowPrivilegeEscalation` to false and "
    if context.get("privileged"):
        yield bad(field, False, f"{why}`privileged` to true")
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        yield bad(field, False, f"{why}`capabilities.Add` CAP_SYS_ADMIN")


CONTEXT = table(
    "runAsUser, runAsGroup: int32",
    "procMount: given; Default | Unmasked",
    COMMON,
    _no_escalation,
)
