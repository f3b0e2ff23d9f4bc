"""The options of a write: manager, force, dry run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from fnop.interpreters.cluster.apply.managed import Writer
from fnop.interpreters.cluster.requests.request import Call
from fnop.interpreters.cluster.values.status import Fault, invalid, quoted
from fnop.interpreters.runtime.protocol import APPLY_PATCH

__all__ = ["check_options", "is_apply", "is_forced", "writer_of"]

# In bytes (FieldManagerMaxLength).
LONGEST_MANAGER = 128


def writer_of(call: Call) -> Writer:
    """The manager of a request: its fieldManager, or the name of its client."""
    manager = call.query.get("fieldManager") or _agent_name(call.request.agent)
    return Writer(manager, call.now, call.route.subresource or "")


@lru_cache(maxsize=1024)
def _agent_name(agent: str) -> str:
    """The name of a client: its User-Agent up to the first slash.

    >>> _agent_name("kubectl/v1.30 (linux)")
    'kubectl'
    """
    name, size = "", 0
    for letter in filter(str.isprintable, agent.partition("/")[0]):
        size += len(letter.encode())
        if size > LONGEST_MANAGER:
            break
        name += letter
    return name


def is_apply(call: Call) -> bool:
    """Whether a patch is a configuration to be applied."""
    return call.request.content_type.partition(";")[0].strip() == APPLY_PATCH


def is_forced(call: Call) -> bool:
    """Whether an apply may take over fields of others; anything but a no is a yes."""
    given = call.query.get("force")
    return given is not None and given.lower() not in ("false", "0")


def check_options(call: Call, kind: str, *, applies: bool = False) -> None:
    """422 for invalid options."""
    if not call.query and not applies:
        return
    faults = [*_faults(call, applies=applies)]
    if not applies and kind == "PatchOptions" and "force" in call.query:
        message = "Forbidden: may not be specified for non-apply patch"
        faults.insert(0, Fault("force", "FieldValueForbidden", message))
    if faults:
        raise invalid("meta.k8s.io", kind, "", faults)


def _faults(call: Call, *, applies: bool) -> Iterator[Fault]:
    manager = call.query.get("fieldManager", "")
    if applies and not manager:
        message = "Required value: is required for apply patch"
        yield Fault("fieldManager", "FieldValueRequired", message)
    if len(manager.encode()) > LONGEST_MANAGER:
        message = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        yield Fault("fieldManager", "FieldValueTooLong", message)
    for place, letter in enumerate("" if manager.isprintable() else manager):
        if not letter.isprintable():
            yield Fault(
                "fieldManager",
                "FieldValueInvalid",
                f"Invalid value: {quoted(manager)}: invalid character "
                f"U+{ord(letter):04X} (at position {place})",
            )
    dry_run = call.query.get("dryRun", "All")
    if dry_run != "All":
        yield Fault(
            "dryRun",
            "FieldValueNotSupported",
            f'Unsupported value: [{quoted(dry_run)}]: supported values: "All"',
        )
    validation = call.query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        yield Fault(
            "fieldValidation",
            "FieldValueNotSupported",
            f"Unsupported value: {quoted(validation)}: supported values: "
            '"", "Ignore", "Strict", "Warn"',
        )
