"""The exceptions that handlers raise, and that fnop raises in handlers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from fnop.core.values.similarity import similar
from fnop.effects.values import check_seconds, without_addresses, without_userinfo

__all__ = [
    "AdmissionError",
    "CallFailed",
    "Cancelled",
    "Denied",
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
    "parts_of",
    "shortened",
    "text_of",
]

# The maximum length of an error's text that is stored, logged and compared.
TEXT_LENGTH_MAX = 4_000


def text_of(problem: BaseException) -> str:
    """The text of an exception as a value that can be stored, logged and compared.

    It is valid Unicode, which file names need not be. It is the same each time:
    addresses of objects are replaced. URLs in it have no user and no password. It has
    at most some 4,000 characters, because a library may quote a whole response.

    >>> text_of(FileNotFoundError("caf\\udce9"))
    'caf\\\\udce9'
    >>> text_of(ValueError("no <Client object at 0x7f3a51c0d9a0>"))
    'no <Client object at 0x...>'
    """
    try:
        text = str(problem)
    except Exception:
        return "(an error whose text cannot be had)"
    return as_unicode(shortened(without_userinfo(without_addresses(text))))


def shortened(text: str, most: int = TEXT_LENGTH_MAX) -> str:
    """Return a text without its middle if it has more than `most` characters.

    >>> shortened("abc"), shortened("abcdefghijkl", most=8)
    ('abc', 'abcdef ... (4 characters left out) ... kl')
    """
    left_out = len(text) - most
    if left_out <= 0:
        return text
    end = most // 4
    told = f" ... ({left_out:,} characters left out) ... "
    return f"{text[: most - end]}{told}{text[-end:]}"


def parts_of(problem: BaseException) -> tuple[BaseException, ...]:
    """The exceptions of a group, and of its groups; empty for any other exception.

    >>> inner = ExceptionGroup("", [KeyError()])
    >>> parts_of(ExceptionGroup("", [ValueError("a"), inner]))
    (ValueError('a'), KeyError())
    """
    if not isinstance(problem, BaseExceptionGroup):
        return ()
    return tuple(
        part for each in problem.exceptions for part in parts_of(each) or (each,)
    )


def as_unicode(text: str) -> str:
    """Return a text with escapes instead of surrogates, which are invalid Unicode.

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
    """Raised by a handler that has failed permanently: it is not retried.

    The failure holds for this change of the object; another change begins again.

        raise fnop.PermanentError("spec.size must be set")
    """

    if not TYPE_CHECKING:

        def __new__(cls, *args, **given):
            """Refuse a delay with a helpful sentence: Python's own names no remedy."""
            if "delay" in given and cls.__init__ is PermanentError.__init__:
                raise TypeError(
                    f"{cls.__name__} is final, and takes no delay; raise "
                    f"TemporaryError(..., delay={given['delay']!r:.80})"
                )
            return super().__new__(cls, *args)


class TemporaryError(Exception):
    """Raised by a handler that should be retried later.

    `message` goes to the log. `delay` is the wait in seconds, 60 by default; None means
    at once. Raises `TypeError` or `ValueError` for a delay that is not a duration in
    seconds.

    >>> TemporaryError("the disk is not there yet", delay=5).delay
    5.0
    """

    delay: float = 60.0  # also in a class whose author has not called this __init__

    if not TYPE_CHECKING:

        def __new__(cls, *args, **given):
            """Refuse mistyped arguments with a remedy, which Python's text lacks."""
            wrong = sorted(given.keys() - {"message", "delay"})
            if wrong and cls.__init__ is TemporaryError.__init__:
                raise TypeError(
                    f"{cls.__name__} has no argument {wrong[0]!r}; write "
                    f"{cls.__name__}('...', delay=30)"
                )
            return super().__new__(cls, *args)

    def __init__(self, message: str = "", delay: float | None = 60) -> None:
        super().__init__(message)
        if delay is not None:
            check_seconds(delay, "TemporaryError.delay")
        self.delay = float(delay or 0.0)


class HandlerTimeoutError(PermanentError):
    """The handler's `timeout=` has passed: the failure that the log then shows.

    For example:

        @fnop.on.create("databases", timeout=60)
        def created(**_): ...
    """


class HandlerRetriesError(PermanentError):
    """The handler's `retries=` are used up: the failure that the log then shows.

    For example:

        @fnop.on.create("databases", retries=3)
        def created(**_): ...
    """


class AdmissionError(PermanentError):
    """Raised by a handler of `@fnop.on.validate` or `@fnop.on.mutate`: it denies.

    The user sees `message`; `code` is the HTTP status of the denial. The API server
    answers 400 if the code is lower than that; None means 500. Raises `TypeError` for a
    code that is not an integer.

    >>> AdmissionError("the size must be even", code=400).code
    400
    >>> AdmissionError("no", code=None).code
    500
    """

    code: int = 500

    def __init__(self, message: str = "", code: int | None = 500) -> None:
        super().__init__(message)
        code = 500 if code is None else code
        if type(code) is not int:
            raise TypeError(
                f"{type(self).__name__}.code is an HTTP status, such as 403, not "
                f"{code!r:.80}"
            )
        self.code = code


class Denied(AdmissionError):
    """Raised by a handler of `@fnop.on.validate` or `@fnop.on.mutate`: it denies.

    The user sees the `message`. With `field`, a dotted path, the denial has the form of
    the API server's own: code 422, reason Invalid, and the field as its cause. Without
    it the code is 403, unless another `code` is given.

    >>> Denied("it must not shrink", field="spec.size").code, Denied("no").code
    (422, 403)
    """

    def __init__(
        self, message: str = "", *, field: str = "", code: int | None = None
    ) -> None:
        super().__init__(message, (422 if field else 403) if code is None else code)
        if not isinstance(field, str):
            raise TypeError(
                f"Denied.field is a dotted path, such as 'spec.size', not {field!r:.80}"
            )
        self.field = field


class Refused(Exception):
    """Raised in a conversation if the API server refuses an awaited effect.

    `status` is the HTTP status, `reason` is the API's term for it, such as "Conflict";
    `message` is the server's sentence.

        try:
            await fnop.create(manifest)
        except fnop.Refused as problem:
            if problem.status != 409:
                raise
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class CallFailed(Exception):
    """Raised in a conversation if a function that `fnop.call` runs has failed.

    `type` is the name of its exception's class, `message` the exception's text. A
    `PermanentError` or `TemporaryError` is raised as such instead.

        try:
            price = await fnop.call(price_of, item="pen")
        except fnop.CallFailed as problem:
            raise fnop.TemporaryError(str(problem), delay=30) from problem
    """

    def __init__(self, type: str, message: str) -> None:
        super().__init__(f"{type}: {message}")
        self.type = type


class Cancelled(Exception):
    """Raised in a conversation that is over: the object or the operator is ending.

    A handler can catch it to clean up, but it cannot await any effect after it.

        try:
            await fnop.sleep(60)
        except fnop.Cancelled:
            logger.info("it ends early")
            raise
    """


class NotPure(BaseException):
    """Raised if the author's code has a side effect, though it may only decide.

    It is not an `Exception`, so that a handler that catches its library's exceptions
    does not catch it. `act` is a value that names the side effect; the guard that
    noticed it sets it.
    """

    def __init__(self, message: str = "", act: Hashable = None) -> None:
        super().__init__(message)
        self.act = act


def act_of(problem: BaseException | None) -> Hashable:
    """The side effect that an error refuses; None for any error but `NotPure`.

    >>> act_of(NotPure("not here", act="opens a file")), act_of(ValueError("no"))
    ('opens a file', None)
    """
    return problem.act if isinstance(problem, NotPure) else None


class RegistrationError(TypeError):
    """Raised if a handler cannot work as declared; the message has the remedy.

    For example:

        @fnop.on.create("pods", lables={"app": "web"})  # did you mean 'labels'?
        def created(name, **_): ...
    """


class ErrorsMode(Enum):
    """The meanings of an exception, other than fnop's own, in a handler: `errors=`.

    IGNORED: it is logged, and the handler counts as successful. TEMPORARY: the handler
    is retried after its backoff; this is the default. PERMANENT: it has failed
    permanently.

        @fnop.on.create("databases", errors=fnop.ErrorsMode.PERMANENT)
        def created(**_): ...
    """

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
    """A hint for a mistyped argument: the nearest known name, or all of them."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"it may ask for {listed(known)}"


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most similar to a name, if one is similar at all."""
    found = similar(name, known)
    return found[0] if found else None


def listed(names: Iterable[str]) -> str:
    """Names in alphabetical order, with commas."""
    return ", ".join(sorted(names))
