"""The model of a function that gives the answers of a recorded run again.

It is apart from the other models, since only recordings need the modules it imports.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

from fnop.effects.values import canonical
from fnop.interpreters.recording.identities.volatile import has_token
from fnop.interpreters.recording.model.calls import fits
from fnop.interpreters.simulation.externals import External

__all__ = ["Recorded"]

_UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Recorded(External):
    """The answers that a function gave in a recorded run.

    `answers` are pairs of the keyword arguments and the answer: a value, or an
    exception to raise. Several answers for equal arguments are given in their order,
    and the last one stays. `answer` is the model. It treats all uids as equal, because
    an object that is created again has another one. It accepts any text for a secret
    that the recording replaced by a token. Raises `LookupError` for other arguments.

    >>> size_of = Recorded([({"name": "a"}, 1), ({"name": "a"}, 2)])
    >>> [size_of.answer(name="a") for _ in range(3)]
    [1, 2, 2]
    """

    def __init__(
        self, answers: Iterable[tuple[Mapping[str, Any], Any | BaseException]]
    ) -> None:
        self._answers: dict[bytes, list[Any]] = {}
        # Objects that are created again have other uids.
        self._alike: dict[bytes, list[Any]] = {}
        # The number of answers given so far, for arguments with several answers.
        self._given: dict[bytes, int] = {}
        answers = [*answers]
        for arguments, found in answers:
            text = canonical(arguments)
            self._answers.setdefault(text, []).append(found)
            self._alike.setdefault(_UID.sub(b"", text), []).append(found)
        self._concealing = [
            (arguments, canonical(arguments))
            for arguments, _ in answers
            if has_token(arguments)
        ]

    def fork(self) -> Self:
        """The same answers, with the same number of them given."""
        made = copy.copy(self)
        made._given, made._creations = dict(self._given), dict(self._creations)
        return made

    def digest(self) -> Any:
        """The number of answers given so far, for arguments with several answers."""
        return {text.decode(): given for text, given in sorted(self._given.items())}

    def visible(self) -> Any:
        """None: clients cannot see the number of questions."""
        return None

    def answer(self, **arguments: Any) -> Any:
        """Give the recorded answer to a call with these `arguments`."""
        text = canonical(arguments)
        several = self._answers.get(text)
        if several is None:
            text = _UID.sub(b"", text)
            several = self._alike.get(text)
        if several is None:
            fitting = (key for told, key in self._concealing if fits(told, arguments))
            text = next(fitting, b"")
            several = self._answers.get(text)
        if several is None:
            raise LookupError(
                f"no answer was recorded for the arguments {arguments!r}; give a model"
            )
        last = len(several) - 1
        place = min(self._given.get(text, 0), last)
        if last:
            self._given[text] = min(place + 1, last)
        found = several[place]
        if isinstance(found, BaseException):
            raise copy.copy(found)
        return copy.deepcopy(found)
