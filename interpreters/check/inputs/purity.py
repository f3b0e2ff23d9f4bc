"""The purity gate: it finds code that asks the world, but must decide by its arguments.

A simulation, a replay or a check calls a handler that is not impure as often as it
likes. The handler must decide the same each time. The guard
(`fnop.interpreters.runtime.guard`) notices code that acts on the world. This gate
notices code that asks it: for the time, for random numbers, the environment, files and
sockets.

The gate is for one run of a check, and never on in production. Python reports each call
of a function, including C functions (`sys.setprofile`), which makes handlers several
times slower. Audit events report files and actions (PEP 578). Nothing is patched. The
gate misses two things: a C function called by another C function, as by
`map(os.urandom, ...)`, and a C library's own questions.

The gate permits everything that a module does during its import, and everything that
logging needs. It also permits time zones, and the lines of code that tracebacks and
warnings show. It permits the files of Python and of installed libraries, which are code
as well.
"""

from __future__ import annotations

import _socket
import dis
import genericpath
import os
import pathlib
import posixpath
import random
import secrets
import socket
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType
from typing import Any

from msgspec import Struct

from fnop.core.handlers.declare.declaring import Declaring
from fnop.core.handlers.run.arguments import Situation
from fnop.core.handlers.run.invocation import Journal
from fnop.effects.structs import replace
from fnop.interpreters.runtime.guard import (
    WATCHED_EVENTS,
    authors_frames,
    notice_collections,
)
from fnop.interpreters.runtime.installed import is_installed, is_library

__all__ = ["Finding", "Purity"]

_NOW = "use the argument `now`, which is fixed for the attempt"
_DURATION = "use the argument `now`, or `runtime` for the time since the first attempt"
_SLEEP = "use `await fnop.sleep(seconds)`"
_RANDOM = "use `await fnop.random(size)`, or derive it from the object's `uid`"
_ENVIRONMENT = "read it at the top of the module, or by fnop.call(function, ...)"
_FILE = (
    "read the file at the top of the module, or by fnop.call(function, ...), or "
    "declare the handler with impure=True"
)
_ACT = "use fnop.call(function, ...), or declare the handler with impure=True"


class Finding(Struct, frozen=True):
    """One use of the world by code that only decides.

    `handler` is the handler's id, or the name of a filter or another function. `what`
    says what was used, `alternative` what fnop has instead. `file` and `line` (from 1)
    belong to the author's code, even if a library that it calls is the user.

    >>> print(Finding("create_fn", "calls time.time", _NOW, "/srv/op.py", 12))
    create_fn calls time.time (op.py, line 12): use the argument `now`, which is fixed \
for the attempt
    """

    handler: str
    what: str
    alternative: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """The file, without its folder, and the line."""
        return f"{os.path.basename(self.file)}, line {self.line}"

    def __str__(self) -> str:
        return f"{self.handler} {self.what} ({self.place}): {self.alternative}"


class Purity:
    """Collects the `findings` of one run; it is the eye of a `Machine`.

    A line is reported once for each of time, random numbers, environment, files and
    acts.

        purity = Purity()
        machine = Machine(program, eye=purity)
        ...
        assert not purity.findings
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int, str], Finding] = {}
        self._before: Any = None
        self._outer: Purity | None = None
        self._profile = _profile_of(self)
        self._numpy: _NumpyNumbers | None = None
        _install()

    @property
    def findings(self) -> list[Finding]:
        """The findings, in the order of their discovery."""
        return [*self._found.values()]

    def open(self) -> None:
        """Watch this thread."""
        self._before, self._outer = sys.getprofile(), _WATCHED.get(get_ident())
        _WATCHED[get_ident()] = self
        if "numpy.random" in sys.modules:
            self._numpy = self._numpy or _NumpyNumbers()
            self._numpy.look()
            sys.setprofile(_profile_with_numpy(self, self._profile, self._numpy))
        else:
            sys.setprofile(self._profile)

    def shut(self) -> None:
        """Stop watching it."""
        if callable(self._before) or self._before is None:
            sys.setprofile(self._before)
        else:  # a C profiler, such as cProfile's, is not a function: it sets itself
            self._before.enable()
        if self._outer is None:
            del _WATCHED[get_ident()]
        else:
            _WATCHED[get_ident()] = self._outer

    def acted(self, did: str, frame: FrameType | None) -> None:
        """Note an action on the world, such as `connects to 10.0.0.1:80`."""
        self.saw(did, _ACT, frame)

    def drove(self, situation: Situation, journal: Journal) -> None:
        """Attempts are for others."""

    def saw(
        self,
        what: str,
        alternative: str,
        frame: FrameType | None,
        line: int | None = None,
    ) -> None:
        """Note a use of the world, if the author's code is responsible for it.

        Without a `line`, the current line of the author's code is used.
        """
        frames = authors_frames(frame)
        if not frames or not _is_called_by_fnop(frames[-1]):
            return
        if any(map(_is_free, frames)):
            return
        author = _author_frame(frames)
        declaring = Declaring.current.get()
        handler = frames[-1].f_code.co_qualname.rpartition("<locals>.")[2]
        if declaring is not None:
            handler = declaring.parent.id
        place = author.f_code.co_filename, line or author.f_lineno
        key = handler, *place, alternative
        self._found.setdefault(key, Finding(handler, what, alternative, *place))


# --------------------------------------------------------------- whose code it is

# The modules that may ask: their answers are for a log or for a reader, or are the same
# everywhere (time zones). Some ask whether they should be debugged, or which plug-ins
# are wanted. The clients' models create a configuration without a reader.
_FREE = (
    "importlib",
    "kubernetes.client.configuration",
    "kubernetes_asyncio.client.configuration",
    "linecache",
    "logging",
    "loguru",
    "pydantic.plugin",
    "ruamel.yaml.compat",
    "structlog",
    "traceback",
    "warnings",
    "zoneinfo",
)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _is_called_by_fnop(frame: FrameType) -> bool:
    """Whether a function decides for fnop; else it belongs to a step's own code."""
    return frame.f_back is not None and _module(frame.f_back).startswith("fnop.core.")


def _is_free(frame: FrameType) -> bool:
    name = _module(frame)
    return any(name == each or name.startswith(f"{each}.") for each in _FREE)


def _author_frame(frames: list[FrameType]) -> FrameType:
    """The author's function that is nearest to the event.

    Its module is not a library's, or belongs to the package of the function that fnop
    called: an operator may be installed as well.
    """
    outer = frames[-1]
    package = _module(outer).partition(".")[0]
    for frame in frames:
        name = _module(frame)
        if name.startswith("fnop.") or frame.f_code.co_filename.startswith("<"):
            continue
        if name.partition(".")[0] == package:
            return frame
        if not is_library(frame.f_code.co_filename):
            return frame
    return outer


# ------------------------------------------------------------- calls of functions


class _Use(Struct, frozen=True):
    """A function that asks the world, with its shown name and fnop's alternative.

    It only asks if `holds` is true for the frame that is entered, or that calls it.
    """

    what: str
    alternative: str
    holds: Callable[[FrameType, Any], bool] = lambda frame, function: True


def _arguments(frame: FrameType) -> int | None:
    """The number of arguments of the call that a frame makes; None if unknown.

    Python reports a call of a C function without its arguments.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    name = dis.opname[code[at]]
    return code[at + 1] if name in ("PRECALL", "CALL", "CALL_KW") else None


def _has_at_most(most: int) -> Callable[[FrameType, Any], bool]:
    """Whether a call has this number of arguments or fewer: then the clock fills in."""

    def holds(frame: FrameType, function: Any) -> bool:
        number = _arguments(frame)
        return number is not None and number <= most

    return holds


def _is_called_by_author(frame: FrameType, function: Any) -> bool:
    """Whether it is called from a file that is not a library's."""
    return not is_library(frame.f_code.co_filename)


def _is_authors_call(frame: FrameType, function: Any) -> bool:
    """Whether a Python function is called from a file that is not a library's.

    An event loop makes a pair of sockets for its own use.
    """
    caller = frame.f_back
    return caller is not None and not is_library(caller.f_code.co_filename)


def _is_shared(frame: FrameType, function: Any) -> bool:
    """Whether a C function uses the random numbers that all modules share."""
    return getattr(function, "__self__", None) is _SHARED


def _is_shared_source(frame: FrameType, function: Any) -> bool:
    """Whether a Python method draws from the shared numbers, or from the system."""
    numbers = frame.f_locals.get("self")
    return numbers is _SHARED or isinstance(numbers, random.SystemRandom)


def _is_unseeded(frame: FrameType, function: Any) -> bool:
    """Whether `random.Random()` gets no seed; with a seed it repeats itself.

    A copy gets the state of its original.
    """
    copies = frame.f_back is not None and _module(frame.f_back) == "copy"
    return frame.f_locals.get("x") is None and not copies


def _is_from_datetime(frame: FrameType, function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(owner, type) and any(
        each.__module__ == "datetime" for each in owner.__mro__
    )


def _is_from_socket(frame: FrameType, function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return isinstance(owner, _socket.socket) or type(owner).__name__ == "_SSLSocket"


_SHARED = random.random.__self__  # type: ignore[attr-defined]

# The C functions by their names: the module of each (None for methods), and the use.
_Table = dict[str, list[tuple[str | None, _Use]]]


def _functions_in_c() -> _Table:
    found: _Table = {}

    def add(module: str | None, names: str, use: _Use) -> None:
        for name in names.split():
            shown = replace(use, what=use.what.format(name))
            found.setdefault(name, []).append((module, shown))

    add("time", "time time_ns", _Use("calls time.{}", _NOW))
    durations = "monotonic monotonic_ns perf_counter perf_counter_ns process_time"
    durations += " process_time_ns thread_time thread_time_ns clock_gettime"
    durations += " clock_gettime_ns"
    add("time", durations, _Use("calls time.{}", _DURATION))
    add(
        "time",
        "gmtime localtime ctime asctime",
        _Use("calls time.{}", _NOW, _has_at_most(0)),
    )
    add("time", "strftime", _Use("calls time.{}", _NOW, _has_at_most(1)))
    add("time", "sleep", _Use("calls time.{}", _SLEEP))
    add(None, "now utcnow today", _Use("calls datetime.{}", _NOW, _is_from_datetime))
    numbers = "random getrandbits getstate"
    add(None, numbers, _Use("calls random.{}", _RANDOM, _is_shared))
    facts = "getcwd getcwdb getpid getppid uname cpu_count getlogin getloadavg getuid"
    for system in ("posix", "nt"):
        add(system, "urandom getrandom", _Use("calls os.{}", _RANDOM))
        add(system, facts, _Use("calls os.{}", _ENVIRONMENT))
        add(
            system,
            "stat lstat access",
            _Use("calls os.{}", _FILE, _is_called_by_author),
        )
    add("_socket", "gethostname", _Use("calls socket.{}", _ENVIRONMENT))
    traffic = "connect connect_ex send sendall sendto sendmsg recv recv_into recvfrom"
    traffic += " recvmsg accept read write"
    add(None, traffic, _Use("calls {} of a socket", _ACT, _is_from_socket))
    return found


def _functions_in_python() -> dict[FunctionType, _Use]:
    found: dict[FunctionType, _Use] = {}

    def add(owner: Any, names: str, use: _Use) -> None:
        for name in names.split():
            function = vars(owner).get(name)
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType):
                found[function] = replace(use, what=use.what.format(name))

    for kind in (random.Random, random.SystemRandom):
        public = [name for name in vars(kind) if not name.startswith("_")]
        add(kind, " ".join(public), _Use("calls random.{}", _RANDOM, _is_shared_source))
    seeding = _Use("makes a random.Random() without a seed", _RANDOM, _is_unseeded)
    add(random.Random, "__init__", seeding)
    add(socket.socket, "__init__", _Use("makes a socket", _ACT, _is_authors_call))
    add(uuid, "uuid1 uuid4 uuid6 uuid7", _Use("calls uuid.{}", _RANDOM))
    add(uuid, "getnode", _Use("calls uuid.{}", _ENVIRONMENT))
    tokens = "token_bytes token_hex token_urlsafe randbelow"
    add(secrets, tokens, _Use("calls secrets.{}", _RANDOM))
    add(os, "getenv getenvb", _Use("calls os.{}", _ENVIRONMENT))
    environ = "__getitem__ __iter__ __len__ __contains__ copy __setitem__ __delitem__"
    add(type(os.environ), environ, _Use("uses os.environ", _ENVIRONMENT))
    looks = "exists isfile isdir lexists getsize getmtime getatime getctime islink"
    for module in (genericpath, posixpath):
        add(module, looks, _Use("calls os.path.{}", _FILE, _is_outside("path")))
    add(
        genericpath,
        "getsize getmtime getatime getctime",
        _Use("calls os.path.{}", _FILE, _is_outside("filename")),
    )
    paths = "exists is_file is_dir stat lstat"
    add(pathlib.Path, paths, _Use("calls Path.{}", _FILE, _is_outside("self")))
    return found


def _is_outside(name: str) -> Callable[[FrameType, Any], bool]:
    """Whether the path in a variable is not an installed library's file."""
    return lambda frame, function: _is_asked(frame.f_locals.get(name))


def _is_asked(path: Any) -> bool:
    """Whether the content of a file may differ tomorrow."""
    if isinstance(path, int):  # it was opened before
        return False
    text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    return text != os.devnull and not is_installed(text)


# ----------------------------------------------------------------- Python's reports


def _profile_of(purity: Purity) -> Callable[[FrameType, str, Any], None]:
    """The function that Python calls at each call and return in a thread.

    Python calls it very often: it looks at a name, or at the globals of the code, and
    hardly ever further. Python reports each look at a frame's code to audit hooks.
    """
    in_c, functions = _functions_in_c(), _functions_in_python()
    in_python = {each.__code__: use for each, use in functions.items()}
    globals_seen = frozenset(id(each.__globals__) for each in functions)

    def called(frame: FrameType, function: BuiltinFunctionType) -> None:
        for module, use in in_c[function.__name__]:
            owner = None if module is None else function.__module__
            if owner == module and use.holds(frame, function):
                purity.saw(use.what, use.alternative, frame)

    def entered(frame: FrameType) -> None:
        use = in_python.get(frame.f_code)
        if use is not None and use.holds(frame, None):
            purity.saw(use.what, use.alternative, frame)

    def profile(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call":
            if function.__name__ in in_c:
                called(frame, function)
        elif event == "call" and id(frame.f_globals) in globals_seen:
            entered(frame)

    return profile


# ----------------------------------------------------------------------- numpy


class _NumpyNumbers:
    """The random numbers that all users of numpy share.

    Python does not report calls of Cython functions. So their state is compared
    whenever a function ends that names one of these, or that fnop has called.
    """

    def __init__(self) -> None:
        shared = sys.modules["numpy.random"]
        self._state: Callable[..., Any] = shared.get_state
        drawing = type(sys.modules["numpy.random.mtrand"]._rand)
        self._names = {name for name in dir(drawing) if not name.startswith("_")}
        self._last: object = None
        self._lines: dict[CodeType, int | None] = {}

    def look(self) -> bool:
        """Whether numbers were drawn since the last look."""
        found = self._state(legacy=False)
        inner = found["state"]
        before = self._last
        if "key" in inner:
            rest = found["has_gauss"], found["gauss"]
            self._last = int(inner["key"][0]), inner["pos"], *rest
        else:  # another library has put a generator there
            self._last = str(found)
        return before != self._last

    def line_in(self, code: CodeType) -> int | None:
        """The first line of a function that names one of the drawing functions."""
        if code not in self._lines:
            lines = (
                each.positions.lineno
                for each in dis.get_instructions(code)
                if each.argval in self._names and each.positions is not None
            )
            self._lines[code] = next(filter(None, lines), None)
        return self._lines[code]


def _profile_with_numpy(
    purity: Purity,
    profile: Callable[[FrameType, str, Any], None],
    numbers: _NumpyNumbers,
) -> Callable[[FrameType, str, Any], None]:
    """A profile function that looks at numpy's numbers as well."""

    def left(frame: FrameType, event: str, function: Any) -> None:
        profile(frame, event, function)
        if event != "return" or _module(frame).startswith("fnop."):
            return
        code = frame.f_code
        if is_library(code.co_filename):
            return
        line = numbers.line_in(code)
        if (line or _is_called_by_fnop(frame)) and numbers.look():
            purity.saw("draws numbers of numpy.random", _RANDOM, frame, line)

    return left


# --------------------------------------------------------------- reports about files


def _words_for_open(args: tuple[Any, ...]) -> str | None:
    path, _, flags = args
    writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    return None if writes or not _is_asked(path) else f"reads the file {_name(path)}"


def _words_for_listing(args: tuple[Any, ...]) -> str | None:
    path = os.getcwd() if args[0] is None else args[0]
    return f"lists the folder {_name(path)}" if _is_asked(path) else None


def _name(path: Any) -> str:
    return os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else str(path)


_READING: dict[str, Callable[[tuple[Any, ...]], str | None]] = {
    "open": _words_for_open,
    "os.listdir": _words_for_listing,
    "os.scandir": _words_for_listing,
}

# The open eyes, by thread.
_WATCHED: dict[int, Purity] = {}
_installed = False


def _install() -> None:
    """Add the hook, once: Python cannot remove one."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_handle_audit_event)
        notice_collections()


def _handle_audit_event(
    event: str,
    args: tuple[Any, ...],
    # Bound here, because at the end of the process the module is empty.
    watched: dict[int, Purity] = _WATCHED,
    events: frozenset[str] = frozenset((*WATCHED_EVENTS, *_READING)),
    thread: Callable[[], int] = get_ident,
) -> None:
    """Handle an audit event; few events of the process are of interest."""
    if watched and event in events:
        purity = watched.get(thread())
        if purity is not None:
            profile = sys.getprofile()
            sys.setprofile(None)  # calls from here do not count
            try:
                for what, alternative in _words_for_event(event, args):
                    purity.saw(what, alternative, sys._getframe(1))
            finally:
                sys.setprofile(profile)


def _words_for_event(event: str, args: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    """An event in words, and fnop's alternative."""
    tables: tuple[tuple[Mapping[str, Any], str], ...] = (
        (_READING, _FILE),
        (WATCHED_EVENTS, _ACT),
    )
    for table, alternative in tables:
        if event in table:
            try:
                what = table[event](args)
            except Exception:  # other Python versions may pass other arguments
                what = f"does what Python calls {event}"
            if what is not None:
                yield what, alternative
