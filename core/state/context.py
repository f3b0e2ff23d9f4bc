"""The reconcile context: one object, within the step that handles it.

Functions about an object get this context and not the whole step. They change the
records through it. It lives within one call of `step`, as the step does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from fnop.core.api.cluster_changes import ClusterChange
from fnop.core.handlers.declare.handler import Handler
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Kind
from fnop.core.seam.commands import Say, Subject
from fnop.core.state.activity import Activity, is_activity
from fnop.core.state.lifecycle import failed
from fnop.core.state.objects import Tombstone
from fnop.core.state.record import ObjectRecord
from fnop.core.state.turn import About, Turn
from fnop.core.values.body import Body, Key
from fnop.core.values.now import Now
from fnop.core.values.table import NOTHING
from fnop.effects import Event
from fnop.effects.structs import replace
from fnop.effects.values import ReadOnlyDict

__all__ = ["Context"]


class Context:
    """One object in one step: its record, and the actions that are possible on it.

    `turn` is the step, for everything that is not about this object alone.
    """

    __slots__ = ("is_activity", "key", "kind", "now", "settings", "turn")

    kind: Kind
    """The object's kind; `KeyError` if it is not served now."""

    def __init__(self, turn: Turn, key: Key) -> None:
        self.turn = turn
        self.key = key
        # Whether it has no object, as for startup and cleanup.
        self.is_activity = is_activity(key)
        self.now: Now = turn.now
        self.settings: Settings = turn.settings
        kind = turn.survey.kinds.get(key.resource)
        if kind is not None and not kind.observation.has_entries:
            self.kind = kind

    def __getattr__(self, name: str) -> Kind:
        """Give a kind whose handlers observe entries of indices, as these are now."""
        if name != "kind":
            raise AttributeError(f"a context has no attribute {name!r}")
        return self.turn.observing(self.turn.survey.kinds[self.key.resource])

    def of(self, key: Key) -> Context:
        """The context of another object, in the same step."""
        return Context(self.turn, key)

    # ------------------------------------------------------------- the object

    @property
    def record(self) -> ObjectRecord | None:
        """The present record of the object, or of the activity."""
        if self.is_activity:
            activity = self.turn.lifecycle.activities.get(self.key)
            return None if activity is None else activity.record
        return self.turn.objects.get(self.key)

    @property
    def change(self) -> ClusterChange | None:
        """The change of the cluster that an activity is about."""
        activity = self.turn.lifecycle.activities.get(self.key)
        return None if activity is None else activity.change

    @property
    def is_served(self) -> bool:
        """Whether the object's kind is served and has handlers."""
        return self.key.resource in self.turn.survey.kinds

    @property
    def tombstone(self) -> Tombstone | None:
        """The object that had this name, if a live answer says that it is gone."""
        return self.turn.objects.tombstones.get(self.key)

    def put(self, record: ObjectRecord) -> None:
        """Store the record of the object, or of the activity."""
        if self.is_activity:
            life = self.turn.lifecycle
            activity = life.activities.get(self.key) or Activity(record)
            activity = replace(activity, record=record)
            self.turn.lifecycle = life.with_activity(self.key, activity)
        else:
            self.turn.objects.put(self.key, record)

    def drop(self) -> None:
        """Forget the object, or end the activity."""
        if self.is_activity:
            life = self.turn.lifecycle
            self.turn.lifecycle = life.without_activity(self.key)
        else:
            self.turn.drop(self.key)

    def leave_tombstone(self, body: Body) -> None:
        """Mark the object as gone by a live answer: a watch that shows it is late."""
        self.turn.objects.leave_tombstone(self.key, body, self.turn.counters.step)

    def drop_tombstone(self) -> None:
        """Remove the mark of an object that is gone."""
        self.turn.objects.drop_tombstone(self.key)

    def due(self, at: float | None = None) -> None:
        """Reconcile the object at this time (monotonic); without a time, at once."""
        if self.is_activity:
            life, at = self.turn.lifecycle, self.now.mono if at is None else at
            self.turn.lifecycle = life.with_activity_due(self.key, at)
        else:
            self.turn.objects.due(self.key, at)

    # ----------------------------------------------------------- the operator

    @property
    def keeps_still(self) -> bool:
        """Whether a handler's freeze forbids to begin further work."""
        return self.turn.lifecycle.frozen is not None and not self.is_activity

    @property
    def children(self) -> Mapping[Key, str]:
        """The versions of the objects that this one owns, of the kinds in `owns=`."""
        objects = self.turn.objects
        record = self.record if objects.family.owners else None
        return NOTHING if record is None else objects.owned_by(record.body)

    def activity_failed(self) -> None:
        """Note that a startup or cleanup handler has failed permanently."""
        self.turn.lifecycle = failed(self.turn.lifecycle)

    def configure(self, settings: Settings) -> None:
        """Apply the settings that a startup handler has changed."""
        self.turn.configure(settings)
        self.settings = settings

    def remember(self, memo: ReadOnlyDict) -> None:
        """Store the memo of a startup handler, for all objects."""
        self.turn.lifecycle = replace(self.turn.lifecycle, memo=memo)

    # --------------------------------------------------------------- commands

    def subject(self, body: Body | None = None) -> Subject:
        """The object, as commands name it."""
        return self.turn.subject(self.key, body)

    def say(self, level: str, message: str, **about: Unpack[About]) -> None:
        """Log a line about the object."""
        self.turn.say(level, message, key=self.key, **about)

    def say_of(
        self, handler: Handler, level: str, line: str, /, **about: Unpack[About]
    ) -> None:
        """Log a line about a handler of the object: its label, and the line."""
        about["handler"] = handler.id
        self.say(level, f"{handler.label} {line}", **about)

    def line(self, level: str, message: str, **about: Unpack[About]) -> Say:
        """A log line about the object, to be emitted later."""
        return self.turn.line(level, message, key=self.key, **about)

    def warn_once(self, about: str, message: str) -> None:
        """Log a warning about the object, once in a process."""
        self.turn.warn_once(about, message, self.key)

    def post(self, event: Event, handler: str) -> None:
        """Make a log line of this step a Kubernetes Event about the object."""
        self.turn.noted += ((self.key, event, handler),)
