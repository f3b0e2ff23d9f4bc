"""Actions of others: changes of handled objects and their children, and deletions.

A version that an input shows is the operator's if one of its requests may have made it.
Such a request is open, has lost its reply, or was answered with this version. Fields
that such a request does not set, and that others manage, still count as changes by
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fnop.core.children.fields import managers_at
from fnop.core.children.owned import owners_of
from fnop.core.seam.traces import Version
from fnop.core.values.body import Body
from fnop.core.values.diff import Diff, DiffItem
from fnop.interpreters.recording.model.fields import changes_of, fields_text
from fnop.interpreters.recording.model.presence import Presence
from fnop.interpreters.recording.model.revisions import ref_of
from fnop.interpreters.recording.model.versions import objects_in
from fnop.interpreters.recording.questions.provenance import covers

__all__ = ["Others", "OthersChange"]

Json = Mapping[str, Any]

_DELETION = ("metadata", "deletionTimestamp")
_SETTLED = frozenset(("Applied", "Conflict", "Refused", "Missing"))


class OthersChange(NamedTuple):
    """An action of others: the story that it belongs to, the text, and the object."""

    where: str
    text: str
    label: str


class _Told(NamedTuple):
    """An object in the story: whose story it belongs to, and its name there.

    A child belongs to the story of its owner.
    """

    where: str
    label: str
    is_handled: bool = False


@dataclass
class Others:
    """The fold: takes records in, returns actions.

    `manager` is the operator's name in managed fields, if it is known.
    """

    manager: str = ""
    _bodies: dict[str, Body] = field(default_factory=dict)
    _told: dict[str, _Told] = field(default_factory=dict)
    # The requests that may have changed an object, by its kind and its names.
    _sent: dict[str, dict[int, Json]] = field(default_factory=dict)
    _labels: dict[int, str] = field(default_factory=dict)
    _streams: dict[int, str] = field(default_factory=dict)
    _presence: Presence = field(default_factory=Presence)
    # Steps are missing, and requests with them. Then only fields that others manage
    # count as theirs.
    _is_partial: bool = False

    def miss(self) -> None:
        """Steps are missing: changes of objects there are not attributed to others."""
        self._bodies.clear()
        self._presence.miss()
        self._is_partial = True

    def add(self, record: Json) -> list[OthersChange]:
        """Take one record in; return the actions of others that its input shows."""
        input, commands = record["input"], record["commands"]
        if input["in"] == "Started":
            self._is_partial = False
        for command in commands:
            if command["do"] == "Began" and command.get("object"):
                self._note_handled(
                    Version(*command["object"]), command.get("children", ())
                )
        found = [*self._changes_in_input(input)]
        if input["in"] == "Answered":
            self._forget_settled(input)
        for each in self._presence.add(record):
            found += self._deletion_by_others(each.uid, listed=each.listed)
        for command in commands:
            self._send(command)
        return found

    def _note_handled(self, version: Version, children: Any) -> None:
        self._told.setdefault(version.uid, _Told(version.where, _label(version), True))
        for each in children:
            child = Version(*each)
            self._told[child.uid] = _Told(version.where, _label(child))

    def _send(self, command: Json) -> None:
        match command:
            case {"do": "Watch" | "ListPage", "stream": stream, "resource": resource}:
                self._streams[stream] = resource
            case {"do": "Perform", "id": number, "resource": str(resource)}:
                names = command.get("namespace") or "", command.get("name") or ""
                label = ref_of(resource, *names).label
                self._labels[number] = label
                self._sent.setdefault(label, {})[number] = command["effect"]
            case _:
                pass

    def _forget_settled(self, input: Json) -> None:
        """Forget a request whose answer has reported everything that it did.

        An object that the operator deletes may stay until its finalizers are removed.
        """
        label = self._labels.pop(input["id"], "")
        sent, kind = self._sent.get(label, {}), input["outcome"]["is"]
        effect = sent.get(input["id"], {})
        is_deletion = effect.get("is") == "Delete" and kind == "Applied"
        if kind in _SETTLED and not is_deletion:
            sent.pop(input["id"], None)
        if not sent:
            self._sent.pop(label, None)

    # ------------------------------------------------------------------- sights

    def _changes_in_input(self, input: Json) -> Iterator[OthersChange]:
        if input.get("type") == "DELETED":
            return
        for each in objects_in(input):
            body = Body(each)
            was = self._bodies.get(body.uid)
            if was is not None and not _is_newer(body.version, was.version):
                continue
            self._bodies[body.uid] = body
            told = self._told.get(body.uid) or self._known_child(input, body)
            if was is not None and told is not None:
                yield from self._changes_by_others(told, was, body)

    def _known_child(self, input: Json, body: Body) -> _Told | None:
        """A child of an object in the story, known by its owner reference."""
        owners = (self._told.get(each.uid) for each in owners_of(body))
        owner = next((each for each in owners if each and each.is_handled), None)
        resource = self._streams.get(input.get("stream", -1))
        label = self._labels.get(input.get("id", -1), "")
        if resource:
            label = ref_of(resource, body.namespace, body.name).label
        if owner is None or not label:
            return None
        return self._told.setdefault(body.uid, _Told(owner.where, label))

    def _changes_by_others(
        self, told: _Told, was: Body, body: Body
    ) -> Iterator[OthersChange]:
        changes = changes_of(was.data, body.data)
        requests = self._sent.get(told.label, {}).values()
        is_asked = any(each["is"] == "Delete" for each in requests)
        if any(each.field == _DELETION for each in changes) and not is_asked:
            yield OthersChange(told.where, f"{told.label} is to be deleted", told.label)
        rest = tuple(
            e for e in changes if not (_is_deletion(e) or (is_asked and _is_policy(e)))
        )
        asked = tuple(e for e in rest if any(covers(r, e.field) for r in requests))
        theirs = tuple(e for e in asked if self._is_theirs(body, e))
        left = tuple(e for e in rest if e not in asked or e in theirs)
        is_ours = len(left) < len(rest)  # a request of ours has made this version
        if is_ours or self._is_partial:
            left = tuple(e for e in left if self._foreign_managers(was, body, (e,)))
        if left:
            names = self._foreign_managers(was, body, left)
            by = f" by {', '.join(names)}" if names else ""
            text = f"{told.label} is changed{by}: {fields_text(left)}"
            yield OthersChange(told.where, text, told.label)

    def _is_theirs(self, body: Body, item: DiffItem) -> bool:
        """Whether only others manage a field that a request of ours sets, too."""
        managers = managers_at(body.data, item.field) if item.new is not None else ()
        return bool(self.manager and managers and self.manager not in managers)

    def _foreign_managers(self, was: Body, body: Body, items: Diff) -> list[str]:
        """The managers of the fields, or those until the fields were removed."""
        found: dict[str, None] = {}
        for each in items:
            of = was if each.new is None else body
            found |= dict.fromkeys(managers_at(of.data, each.field))
        return [each for each in found if each != self.manager]

    def _deletion_by_others(self, uid: str, *, listed: bool) -> Iterator[OthersChange]:
        told = self._told.pop(uid, None)
        self._bodies.pop(uid, None)
        if told is None:
            return
        sent = self._sent.pop(told.label, {})
        if not any(each["is"] == "Delete" for each in sent.values()):
            how = "is gone: a listing lacks it" if listed else "is deleted"
            yield OthersChange(told.where, f"{told.label} {how}", told.label)


def _is_deletion(item: DiffItem) -> bool:
    return item.field[:1] == ("metadata",) and str(item.field[-1]).startswith(
        "deletion"
    )


# Finalizers by which the garbage collector carries out a deletion request.
_POLICIES = frozenset(("foregroundDeletion", "orphan"))


def _is_policy(item: DiffItem) -> bool:
    """Whether the API server sets it for a deletion's propagation policy."""
    if item.field != ("metadata", "finalizers"):
        return False
    old, new = (set(each or ()) for each in (item.old, item.new))
    return old ^ new <= _POLICIES


def _label(version: Version) -> str:
    return ref_of(version.resource, version.namespace, version.name).label


def _is_newer(one: str, other: str) -> bool:
    both = one.isdecimal() and other.isdecimal()
    return int(one) > int(other) if both else one != other
