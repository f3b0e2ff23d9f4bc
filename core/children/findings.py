"""The findings about the children of an object in one conversation."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fnop.core.children.owned import AsDesired, Checked
from fnop.core.children.planning import near
from fnop.core.values.body import Body, Key
from fnop.core.values.table import NOTHING
from fnop.effects import Effect, Target

__all__ = ["Conversation", "Told", "Unkept", "target_of"]

T = TypeVar("T")
# Effects, the answers to them, and a result.
Conversation: TypeAlias = Generator[Effect, Any, T]


class Unkept(NamedTuple):
    """Fields of a child, in the manifest of this digest, that no API server keeps."""

    label: str
    applied: str
    fields: tuple[str, ...]


class Told:
    """The findings about children during a sync."""

    def __init__(
        self, failing: dict[str, str], checked: Checked = NOTHING, answer: str = ""
    ) -> None:
        self.failing = failing
        self.answer = answer
        self.pending: dict[str, str] = {}
        self.checked: dict[Key, AsDesired] = {**checked}
        self.repaired: list[str] = []
        self.changed: list[str] = []
        self.made: list[str] = []
        self.unkept: list[Unkept] = []
        self.deleted: set[Key] = set()
        self.is_owner_there: bool | None = None

    @property
    def settled(self) -> str:
        """The digest of what is desired, if all was as desired; else ""."""
        applied = any(not each.version for each in self.checked.values())
        if self.failing or self.pending or self.deleted or applied:
            return ""
        return self.answer

    @property
    def unshown(self) -> bool:
        """Whether an answer has reported a child as gone: the watch should follow.

        Such an answer may be wrong.
        """
        return bool(self.deleted) or self.is_owner_there is False

    @property
    def grows(self) -> bool:
        """Whether new children were made, and no other changes."""
        others = self.repaired or self.deleted or len(self.changed) > len(self.made)
        return bool(self.made and not others)

    def blocks(self, names: Iterable[str]) -> str:
        """The first of these children that does not exist yet; else ""."""
        names = tuple(names)
        if not names:
            return ""
        waiting = {*self.failing, *self.pending}
        waiting |= {near(label) for label in waiting}
        return next((each for each in names if each in waiting), "")


def target_of(key: Key, body: Body) -> Target:
    """The target of a write to this very object."""
    return Target(key.resource, key.name, key.namespace or None, body.uid)
