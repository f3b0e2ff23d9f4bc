"""The code of operators: the release, the Python version, the handlers' digests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import number_of
from fnop.interpreters.recording.format.digests import KIND, PYTHON, digests_of

__all__ = ["Code", "code_lines", "versions"]


class Code(Struct, frozen=True):
    """The code of an operator: the release of fnop, the version of Python, and the
    digests of handlers by their ids.
    """

    fnop: str
    python: str
    digests: Mapping[str, str]

    @classmethod
    def recorded(cls, header: Mapping[str, Any]) -> Code:
        """The code that a recording was made with, as far as its header has it."""
        found = header.get("code")
        # other digests are of an earlier release
        is_known = header.get("digests") == KIND
        digests = found if isinstance(found, dict) and is_known else {}
        named = {str(name): str(each) for name, each in digests.items()}
        return cls(str(header["fnop"]), str(header.get("python", "")), named)

    @classmethod
    def present(cls, program: Program, release: str) -> Code:
        """The code of a program."""
        return cls(release, PYTHON, digests_of(program.handlers))

    def is_other(self, before: Code, handler: str) -> bool | None:
        """Whether the handler's code has changed; None if unknown.

        Python's instructions differ between its versions.
        """
        digests = before.digests.get(handler), self.digests.get(handler)
        if None in digests or before.python != self.python:
            return None
        return digests[0] != digests[1]

    def others(self, before: Code) -> list[str]:
        """The handlers whose code has changed, as far as known."""
        return [each for each in self.digests if self.is_other(before, each)]


def versions(before: Code, now: Code, handler: str | None) -> tuple[str, str]:
    """Two releases, with the handler's code in each if it is known.

    >>> one, two = Code("1", "3.12", {"h": "aa"}), Code("2", "3.12", {"h": "bb"})
    >>> versions(one, two, "h")
    ('fnop 1, code aa', 'fnop 2, code bb')
    >>> versions(one, one, "h")
    ('fnop 1, code aa', 'fnop 1, the same code')
    >>> versions(one, Code("2", "3.13", {"h": "bb"}), "h")
    ('fnop 1, Python 3.12', 'fnop 2, Python 3.13')
    """
    texts = f"fnop {before.fnop}", f"fnop {now.fnop}"
    is_other = None if handler is None else now.is_other(before, handler)
    if is_other is None:
        if before.python and before.python != now.python:
            return (
                f"{texts[0]}, Python {before.python}",
                f"{texts[1]}, Python {now.python}",
            )
        return texts
    was, is_ = before.digests[handler or ""], now.digests[handler or ""]
    last = f"code {is_}" if is_other else "the same code"
    return f"{texts[0]}, code {was}", f"{texts[1]}, {last}"


def code_lines(before: Code, now: Code) -> Iterator[str]:
    """A line with the handlers of both whose code has changed; no line without any."""
    others = now.others(before)
    known = [each for each in now.digests if now.is_other(before, each) is not None]
    if others:
        same = len(known) - len(others)
        rest = f"; that of {number_of(same, 'handler')} is the same" if same else ""
        yield f"the code of {', '.join(others)} is another one{rest}"
    elif known:
        yield "the code of all handlers is the same"
