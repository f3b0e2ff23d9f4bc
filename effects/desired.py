"""The result of a `@fnop.reconcile` handler: the objects that should exist.

`desired` names the children that an object should have, its conditions, and further
fields of its status. It is not an effect: the effects that it needs depend on the
existing objects, and `fnop.core.children.synchronise` decides on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Literal, Never, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from fnop.effects.effects import Witness, check_manifest
from fnop.effects.manifests import Manifest, manifest_of
from fnop.effects.models import Model, is_model
from fnop.effects.names import check_made
from fnop.effects.regexes import regex
from fnop.effects.values import check_seconds, freeze_written, plain_text, shown

__all__ = [
    "UNCHANGED",
    "Child",
    "Desired",
    "StatusCondition",
    "Unchanged",
    "Wanted",
    "child",
    "condition",
    "desired",
    "label_of",
]

OnImmutable: TypeAlias = Literal["fail", "replace"]

# metav1.Condition: its type is a qualified name, its reason one word in CamelCase.
_TYPE = regex(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9][-A-Za-z0-9_.]{0,315}")
_REASON = regex(r"[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?")
_MESSAGE_LENGTH_MAX = 32_768


class Child(Struct, frozen=True):
    """A manifest of an object that should exist, with options for keeping it.

    Built by `fnop.child`, which explains `manifest`, `after`, `keep`, `adopt`, `force`,
    `foreground` and `on_immutable`.

    >>> Child({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}).label
    'pod/p'
    """

    manifest: Any
    after: tuple[str, ...] = ()
    keep: bool = False
    adopt: bool = False
    force: bool = True
    foreground: bool = False
    on_immutable: OnImmutable = "fail"

    def __post_init__(self) -> None:
        force_setattr(self, "manifest", freeze_written(self.manifest, "a child"))
        check_manifest(self.manifest, "fnop.child", named=True)
        check_made(self.manifest, "fnop.child")
        if self.on_immutable not in ("fail", "replace"):
            raise ValueError(
                f"on_immutable= is 'fail' or 'replace', not {shown(self.on_immutable)}"
            )

    @property
    def label(self) -> str:
        """`kind/name`, with the namespace if the manifest names one."""
        return label_of(self.manifest)


def label_of(manifest: Mapping[str, Any]) -> str:
    """A child as messages name it.

    >>> label_of({"kind": "Pod", "metadata": {"namespace": "n", "name": "p"}})
    'pod/n/p'
    """
    meta = manifest["metadata"]
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{manifest['kind'].lower()}/{place}{meta['name']}"


class StatusCondition(Struct, frozen=True):
    """A condition of an object, built by `fnop.condition`.

    `type` names it; `status` is "True", "False" or "Unknown", `reason` a word, and
    `message` a sentence.

    >>> StatusCondition("Ready", "True", "AllReady").message
    ''
    """

    type: str
    status: str
    reason: str
    message: str = ""


class Unchanged(Enum):
    """The existing children, unchanged: `fnop.desired(fnop.UNCHANGED)`."""

    UNCHANGED = "unchanged"

    def __repr__(self) -> str:
        return "fnop.UNCHANGED"


UNCHANGED = Unchanged.UNCHANGED
"""The children as they are: nothing is applied, repaired or deleted.

>>> desired(UNCHANGED, conditions=condition("Ready", False, "SpecInvalid")).unchanged
True
"""

Wanted: TypeAlias = Manifest | Child | None


class Desired(Struct, frozen=True):
    """The objects that should exist, and more; built by `fnop.desired`.

    `children` are manifests with options. `conditions` and `status` are merged into the
    object's status. The handler is called `again` after this many seconds. With
    `unchanged` the existing children stay as they are.

    >>> Desired().children
    ()
    """

    children: tuple[Child, ...] = ()
    conditions: tuple[StatusCondition, ...] = ()
    status: Any = field(default_factory=dict)
    again: float | None = None
    unchanged: bool = False

    # As in effects, for messages about lost values.
    kind = "Desired"

    def __post_init__(self) -> None:
        witness = Witness.current.get()
        if witness is not None:
            witness.saw(self)


def child(
    manifest: Manifest,
    *,
    after: str | Iterable[str] = (),
    keep: bool = False,
    adopt: bool = False,
    force: bool = True,
    foreground: bool = False,
    on_immutable: OnImmutable = "fail",
) -> Child:
    """A child with options, for `fnop.desired`; a bare manifest has the defaults.

    `manifest` is the object as it should be, a mapping or a client library's model;
    fields that are None are omitted.

    - `after`: the children that are applied before it, as `kind/name`; while one of
      them fails, this one waits.
    - `keep`: fnop releases it, instead of deleting it, when it is not desired any
      longer or its owner is deleted.
    - `adopt`: an object of this name without an owner is taken over; without `adopt`,
      such an object is an error.
    - `force`: with False, fields that others manage stay theirs, and an error names
      them.
    - `foreground`: it is deleted before its owner (`kubectl delete
      --cascade=foreground`), and its own dependents before it.
    - `on_immutable`: the reaction to a change of an immutable field: "fail", or
      "replace", which deletes the child and creates it again.

    Raises `ValueError` and `TypeError` for a manifest without a kind or a name.

    >>> child({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
    ...       keep=True).label
    'secret/s'
    """
    names: tuple[Any, ...] = (after,) if isinstance(after, str) else tuple(after)
    for each in names:
        if not isinstance(each, str) or "/" not in each:
            raise ValueError(
                f"after= names children as kind/name, such as 'secret/db', not "
                f"{shown(each)}"
            )
    before = tuple(each.lower() for each in names)
    flags = {"keep": keep, "adopt": adopt, "force": force, "foreground": foreground}
    return Child(
        manifest_of(manifest), after=before, **flags, on_immutable=on_immutable
    )


def condition(
    type: str,
    status: bool | Literal["True", "False", "Unknown"] | None,
    reason: str = "",
    message: str = "",
) -> StatusCondition:
    """A condition of the handled object, for `fnop.desired`.

    `type` is its name, such as "Ready". `status` is True, False, or None for "Unknown".
    `reason` is one word in CamelCase, by default the type; `message` is for people, by
    default the reason. `lastTransitionTime` changes only with the status.
    `observedGeneration` is the generation of the object that the handler has seen.

    Raises `ValueError` for values that Kubernetes does not allow (metav1.Condition).

    >>> condition("Ready", False, "Starting", "0 of 3")
    StatusCondition(type='Ready', status='False', reason='Starting', message='0 of 3')
    """
    words = {True: "True", False: "False", None: "Unknown"}
    known = status if isinstance(status, str) else words.get(status)
    if known is None or known not in words.values():
        raise ValueError(
            f"the status of a condition is True, False or None, not {shown(status)}"
        )
    why = reason or type.rpartition("/")[2]
    if not _TYPE.fullmatch(type):
        raise ValueError(
            f"the type of a condition is a name such as 'Ready', not {shown(type)}"
        )
    if not _REASON.fullmatch(why):
        raise ValueError(
            f"the reason of a condition is one word such as 'AllReady', not "
            f"{shown(reason)}"
        )
    given: Any = message
    said = plain_text(given if isinstance(given, str) else str(given), "message=")
    return StatusCondition(
        plain_text(type, "type="),
        str.__str__(known),
        plain_text(why, "reason="),
        said[:_MESSAGE_LENGTH_MAX],
    )


def desired(
    children: Wanted | Iterable[Wanted] | Unchanged = (),
    *others: Never,
    conditions: StatusCondition | Iterable[StatusCondition] = (),
    status: Mapping[str, Any] | Model | None = None,
    again: float | None = None,
) -> Desired:
    """The objects that should exist: return it from a `@fnop.reconcile` handler.

    `children` are manifests, or `fnop.child(...)`; None among them is skipped. Several
    are one list; `others` are refused. Existing children that are as desired are not
    touched. Owned children that are not named any longer are deleted. With
    `fnop.UNCHANGED` all children stay as they are, for example while an object is
    paused, or its spec makes no sense.

    `conditions` are merged into the object's by their type, and `status` into its
    status. `status` is a mapping, or an object of your own class, such as a dataclass.
    `again` calls the handler again after this many seconds, without any change.

    Raises `TypeError` and `ValueError` for impossible values, such as two children of
    one kind and name.

    >>> secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    >>> len(desired([secret, None], conditions=condition("Ready", True)).children)
    1
    """
    if others:
        raise TypeError("give several children as one list: fnop.desired([one, other])")
    unchanged = isinstance(children, Unchanged)
    found = () if isinstance(children, Unchanged) else _children_of(children)
    several = (conditions,) if isinstance(conditions, StatusCondition) else conditions
    if again is not None:
        check_seconds(again, "again=")
    return Desired(
        found,
        _checked(tuple(several)),
        _check_status(status),
        again,
        unchanged,
    )


def _check_status(status: Any) -> Any:
    found = freeze_written({} if status is None else status, "status=")
    if not isinstance(found, dict):
        raise TypeError(f"status= is a mapping of fields, not {shown(status)}")
    return found


def _children_of(children: Wanted | Iterable[Wanted]) -> tuple[Child, ...]:
    is_one = (
        isinstance(children, (Mapping, Child))
        or not isinstance(children, Iterable)
        or is_model(children)  # models of pydantic are iterable
    )
    given = (children,) if is_one else tuple(children)  # type: ignore[arg-type]
    found = tuple(
        each if isinstance(each, Child) else Child(manifest_of(each))
        for each in given
        if each is not None
    )
    _refuse_duplicates(found)
    return found


def _refuse_duplicates(children: Iterable[Child]) -> None:
    known: set[tuple[str, str]] = set()
    for each in children:
        identity = each.manifest["apiVersion"].partition("/")[0], each.label
        if identity in known:
            raise ValueError(
                f"{each.label} is desired twice; give one of them another name"
            )
        known.add(identity)


def _checked(conditions: tuple[Any, ...]) -> tuple[StatusCondition, ...]:
    for each in conditions:
        if not isinstance(each, StatusCondition):
            raise TypeError(
                f"conditions= takes fnop.condition(...), not {type(each).__name__}"
            )
    names = [each.type for each in conditions]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the condition {name} is given twice; give it once")
    return conditions
