"""The guard: it notices actions on the world by code that should only decide.

A handler that is not impure decides. So do filters, index functions and all other
author's code that is called within `step`. A simulation and a replay call them as often
as they like. Code that connects to a server or writes a file acts each time. Python
reports such actions by its audit events (PEP 578). One hook for the process looks at
the events of threads that currently take a step.

The guard does not notice connections that were made before, and actions of a C library.
It permits reading, printing, logging through the standard `logging`, the code of a
module during its import, what the garbage collector calls, and signal handlers.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from threading import get_ident
from types import CodeType, FrameType, TracebackType
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.declaring import Declaring
from fnop.core.values.errors import NotPure
from fnop.effects import Witness

__all__ = [
    "GUARDED",
    "WATCHED_EVENTS",
    "Act",
    "Guard",
    "authors_frames",
    "notice_collections",
]

_REMEDY = "let fnop.call(function, ...) do it, or declare the handler with impure=True"
_ELSEWHERE = (
    "this function only decides: leave it to a handler, by fnop.call(function, ...) or "
    "with impure=True"
)


class Act(Struct, frozen=True):
    """An action on the world by a handler (its id), or else by a function (its name).

    `place` is the file and line of the function.
    """

    function: str
    did: str
    place: str
    handler: str | None

    def __str__(self) -> str:
        return f"{self.handler or self.function} {self.did} ({self.place})"

    @property
    def _remedy(self) -> str:
        return _REMEDY if self.handler else _ELSEWHERE

    @property
    def refusal(self) -> str:
        """The reason why the action is refused, and the remedy."""
        return f"{self}: {self._remedy}"

    @property
    def warning(self) -> str:
        """The warning in a cluster, which permits the action is permitted."""
        return (
            f"{self}, which a simulation or a replay refuses, for there it would act "
            f"again: {self._remedy} (told once for each handler)"
        )


class Guard:
    """Notices what the author's code does in this thread, within `with guard:`.

    If it `refuses`, the action raises `NotPure`, and the handler fails even if it
    catches the exception. Otherwise the action is only noted. `is_on` is called when
    something is noticed. `tells` receives each did and its frame before the guard
    refuses it.
    """

    def __init__(
        self,
        *,
        refuses: bool,
        is_on: Callable[[], bool] = lambda: True,
        tells: Callable[[str, FrameType | None], None] = lambda did, frame: None,
    ) -> None:
        self.refuses = refuses
        self._is_on = is_on
        self._tells = tells
        self._told: set[CodeType] = set()
        # The first action of each handler or function, until it is returned.
        self.acts: list[Act] = []
        _install()

    def __enter__(self) -> None:
        GUARDED[get_ident()] = self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        del GUARDED[get_ident()]

    def news(self) -> list[Act]:
        """Return the noticed actions, each once."""
        acts, self.acts = self.acts, []
        return acts

    def saw(self, did: str, frame: FrameType | None) -> None:
        """Note an action that is about to happen. Raises `NotPure` if it is refused."""
        frames = authors_frames(frame)
        if not frames or not self._is_on():
            return
        self._tells(did, frame)
        author = _outermost_of_author(frames)
        act = _act(did, author)
        if author.f_code not in self._told:
            self._told.add(author.f_code)
            self.acts.append(act)
        if self.refuses:
            problem = NotPure(act.refusal, act)
            witness = Witness.current.get()
            if witness is not None and witness.refused is None:
                witness.refused = problem
            raise problem


def _act(did: str, author: FrameType) -> Act:
    declaring = Declaring.current.get()
    handler = None if declaring is None else declaring.parent.id
    code = author.f_code
    file = os.path.basename(code.co_filename)
    place = f"{file}, line {author.f_lineno}"
    function = code.co_qualname.rpartition("<locals>.")[2]
    return Act(function, did, place, handler)


# --------------------------------------------------------------------- the actor

# Actions within these functions are not the author's code.
_LOGGING = logging.Logger.callHandlers.__code__
_FINALIZING = weakref.finalize.__call__.__code__
_IMPORTING = "<frozen importlib._bootstrap>"


def _called_by_python() -> set[CodeType | None]:
    """The functions that Python calls by itself, at any point of a thread.

    They are handlers of signals, callbacks of the garbage collector, and finalizers of
    unreachable objects.
    """
    handlers = (signal.getsignal(each) for each in signal.valid_signals())
    found = {getattr(each, "__code__", None) for each in (*gc.callbacks, *handlers)}
    processes = sys.modules.get("multiprocessing.util")
    if processes is not None:
        found.add(processes.Finalize.__call__.__code__)
    return found


# The threads in which a garbage collection runs. It calls finalizers, callbacks of weak
# references, and the `finally` blocks of abandoned generators and coroutines.
_COLLECTING: set[int] = set()


def _note_collection(
    phase: str,
    info: dict[str, int],
    # Bound here, because at the end of the process the module is empty.
    collecting: set[int] = _COLLECTING,
    thread: Callable[[], int] = get_ident,
) -> None:
    """Note the start and the end of a garbage collection, as one of `gc.callbacks`."""
    if phase == "start":
        collecting.add(thread())
    else:
        collecting.discard(thread())


def notice_collections() -> None:
    """Let `authors_frames` know what the garbage collector calls."""
    if _note_collection not in gc.callbacks:
        gc.callbacks.append(_note_collection)


def authors_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames below fnop's own, up to the function that fnop has called.

    The list is empty if fnop itself acts, or code for which that function is not
    responsible.
    """
    if get_ident() in _COLLECTING:
        return []
    found: list[FrameType] = []
    strangers = _called_by_python()
    while frame is not None:
        code = frame.f_code
        if code is _LOGGING or code is _FINALIZING or code.co_name == "__del__":
            return []
        if code.co_filename == _IMPORTING or code in strangers:
            return []
        if str(frame.f_globals.get("__name__")).startswith("fnop.core."):
            break
        found.append(frame)
        frame = frame.f_back
    return found


def _outermost_of_author(frames: list[FrameType]) -> FrameType:
    """The author's function that fnop has called: adapters may call it for the core."""
    for each in reversed(frames):
        if not str(each.f_globals.get("__name__")).startswith("fnop."):
            return each
    return frames[-1]


# -------------------------------------------------------------------- the action

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _words_for_open(args: tuple[Any, ...]) -> str | None:
    path, _, flags = args
    # A number is a file that was opened before.
    if isinstance(path, int) or not flags & _WRITING or _text(path) == os.devnull:
        return None
    return f"opens {_text(path)} for writing"


def _words_for_database(args: tuple[Any, ...]) -> str | None:
    path = _text(args[0])
    return None if path in (":memory:", "") else f"opens the database {path}"


def _text(value: Any) -> str:
    match value:
        case bytes():
            return os.fsdecode(value)
        case (str() as host, int() as port, *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case _:
            return str(value)


def _words_about(verb: str, place: int = 0) -> Callable[[tuple[Any, ...]], str]:
    return lambda args: f"{verb} {_text(args[place])}"


def _constant_words(did: str) -> Callable[[tuple[Any, ...]], str]:
    return lambda args: did


# Audit events (Python's documentation: "Audit events table") by their meaning.
WATCHED_EVENTS: dict[str, Callable[[tuple[Any, ...]], str | None]] = {
    "socket.connect": _words_about("connects to", 1),
    "socket.bind": _words_about("binds a socket to", 1),
    "socket.getaddrinfo": _words_about("looks up the host"),
    "socket.gethostbyname": _words_about("looks up the host"),
    "socket.gethostbyaddr": _words_about("looks up the host"),
    "socket.getnameinfo": _words_about("looks up the host"),
    "socket.sendto": _words_about("sends to", 1),
    "socket.sendmsg": _constant_words("sends a message through a socket"),
    "open": _words_for_open,
    "sqlite3.connect": _words_for_database,
    "os.remove": _words_about("removes"),
    "os.rename": _words_about("renames"),
    "os.mkdir": _words_about("makes the folder"),
    "os.rmdir": _words_about("removes the folder"),
    "os.link": _words_about("makes a link to"),
    "os.symlink": _words_about("makes a link to"),
    "os.truncate": _words_about("cuts off"),
    "os.chmod": _words_about("changes the rights of"),
    "os.chown": _words_about("changes the owner of"),
    "os.utime": _words_about("changes the times of"),
    "os.setxattr": _words_about("changes the attributes of"),
    "os.removexattr": _words_about("changes the attributes of"),
    "os.kill": _words_about("sends a signal to process"),
    "os.killpg": _words_about("sends a signal to process group"),
    "subprocess.Popen": _words_about("starts the program"),
    "os.system": _words_about("starts the command"),
    "os.exec": _words_about("becomes the program"),
    "os.posix_spawn": _words_about("starts the program"),
    "os.spawn": _words_about("starts the program", 1),
    "os.startfile": _words_about("starts the program"),
    "os.startfile/2": _words_about("starts the program"),
    "pty.spawn": _words_about("starts the program"),
    "os.fork": _constant_words("forks the process"),
    "os.forkpty": _constant_words("forks the process"),
    "_thread.start_new_thread": _constant_words("starts a thread"),
    "_thread.start_joinable_thread": _constant_words("starts a thread"),  # Python 3.13
}

# The guards of the threads that currently take a step.
GUARDED: dict[int, Guard] = {}
_installed = False


def _install() -> None:
    """Add the hook, once: Python cannot remove one."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_handle_audit_event)
        notice_collections()
        if sys.version_info < (3, 12):
            _report_threads()


def _report_threads() -> None:
    """Make Python report the start of a thread, as it does itself from 3.12 on."""
    begin: Callable[..., Any] = threading._start_new_thread  # type: ignore[attr-defined]

    def told(function: Callable[..., Any], args: Any, *more: Any) -> Any:
        sys.audit("_thread.start_new_thread", function, args, *more)
        return begin(function, args, *more)

    threading._start_new_thread = told  # type: ignore[attr-defined]


def _handle_audit_event(
    event: str,
    args: tuple[Any, ...],
    # Bound here, because at the end of the process the module is empty.
    watched: dict[str, Callable[[tuple[Any, ...]], str | None]] = WATCHED_EVENTS,
    guards: dict[int, Guard] = GUARDED,
    thread: Callable[[], int] = get_ident,
) -> None:
    """Handle an audit event; few events of the process are of interest."""
    if guards and event in watched:
        guard = guards.get(thread())
        if guard is not None:
            try:
                did = watched[event](args)
            except Exception:  # other Python versions may pass other arguments
                did = f"does what Python calls {event}"
            if did is not None:
                guard.saw(did, sys._getframe(1))
