"""What handlers raise, and what fnop raises at them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Iterable, Sequence
from enum import Enum

from fnop.effects.values import check_seconds, without_addresses

__all__ = [
    "CallFailed",
    "Cancelled",
    "ErrorsMode",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "NotPure",
    "PermanentError",
    "Refused",
    "RegistrationError",
    "TemporaryError",
    "act_of",
    "as_unicode",
    "described",
    "joined",
    "number_of",
    "shortened",
    "text_of",
]

# The most characters of an error's text that are stored, logged and compared.
TEXT_LENGTH_MAX = 4_000


def text_of(problem: BaseException) -> str:
    """The text of an exception as a value that can be stored, logged and compared.

    It is valid Unicode, which names of files need not be; it is the same each time,
    for addresses of objects are left out; and it has some 4,000 characters at the
    most, as a library may put a whole response into it.

    >>> text_of(FileNotFoundError("caf\\udce9"))
    'caf\\\\udce9'
    >>> text_of(ValueError("no <Client object at 0x7f3a51c0d9a0>"))
    'no <Client object at 0x...>'
    """
    try:
        text = str(problem)
    except Exception:
        return "(an error whose text cannot be had)"
    return as_unicode(shortened(without_addresses(text)))


def shortened(text: str, most: int = TEXT_LENGTH_MAX) -> str:
    """A text, without its middle where it has more than `most` characters.

    >>> shortened("abc"), shortened("abcdefghijkl", most=8)
    ('abc', 'abcdef ... (4 characters left out) ... kl')
    """
    left_out = len(text) - most
    if left_out <= 0:
        return text
    end = most // 4
    told = f" ... ({left_out:,} characters left out) ... "
    return f"{text[: most - end]}{told}{text[-end:]}"


def as_unicode(text: str) -> str:
    """A text with escapes in the place of surrogates, which are no valid Unicode.

    >>> as_unicode("caf\\udce9 \u00e9")
    'caf\\\\udce9 \u00e9'
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def described(problem: BaseException) -> str:
    """An exception in a line: its class and its text.

    >>> described(ValueError("no")), described(KeyError())
    ('ValueError: no', 'KeyError')
    """
    name, text = type(problem).__name__, text_of(problem)
    return f"{name}: {text}" if text else name


class PermanentError(Exception):
    """Final for this change: the handler is not tried again."""


class TemporaryError(Exception):
    """Not now: the handler is tried again after `delay` seconds (None: at once).

    Raises `TypeError` or `ValueError` for what is no duration in seconds.
    """

    delay: float = 60.0  # also of a class whose author has not called this __init__

    def __init__(self, message: str = "", delay: float | None = 60) -> None:
        super().__init__(message)
        if delay is not None:
            check_seconds(delay, "TemporaryError.delay")
        self.delay = float(delay or 0.0)


class HandlerTimeoutError(PermanentError):
    """The handler's `timeout` has passed."""


class HandlerRetriesError(PermanentError):
    """The handler's `retries` are used up."""


class Refused(Exception):
    """The API server refused an effect that a conversation awaited.

    `status` is the HTTP status, `reason` the API's word for it.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class CallFailed(Exception):
    """A function run by `fnop.call` raised; `type` is its exception's class."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type


class Cancelled(Exception):
    """The object is being deleted or the operator ends: the conversation is over.

    It can be caught to tidy up, but no effect can be awaited any more.
    """


class NotPure(BaseException):
    """The author's code acted on the world where it is only to decide.

    It is no `Exception`, so that a handler that catches those of its library does not
    catch it. `act` is a value that names the act; the guard that noticed it gives it.
    """

    def __init__(self, message: str = "", act: Hashable = None) -> None:
        super().__init__(message)
        self.act = act


def act_of(problem: BaseException | None) -> Hashable:
    """The act that an error refuses; None for any error but `NotPure`.

    >>> act_of(NotPure("not here", act="opens a file")), act_of(ValueError("no"))
    ('opens a file', None)
    """
    return problem.act if isinstance(problem, NotPure) else None


class RegistrationError(TypeError):
    """A handler cannot work as it is declared; the message tells the remedy."""


class ErrorsMode(Enum):
    """What an arbitrary exception of a handler means."""

    IGNORED = "ignored"
    TEMPORARY = "temporary"
    PERMANENT = "permanent"


def number_of(number: int, what: str) -> str:
    """A number and a noun, in the singular or the plural.

    >>> number_of(1, "attempt"), number_of(2, "attempt")
    ('1 attempt', '2 attempts')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def joined(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def hint_of(name: str, known: Collection[str]) -> str:
    """What may have been meant by an argument that there is not."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"it may ask for {listed(known)}"


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most similar to a name, if one is similar at all."""
    found = difflib.get_close_matches(name, known, n=1)
    return found[0] if found else None


def listed(names: Iterable[str]) -> str:
    """Names in alphabetical order, with commas."""
    return ", ".join(sorted(names))
