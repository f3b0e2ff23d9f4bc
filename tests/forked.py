"""Commands such as `fnop`, forked from a process that has imported their modules.

To import them takes most of the time of a short command, and tests run a thousand.
Each command is a process all the same, with arguments, a folder, variables and standard
streams of its own.  What Python reads when it starts, such as PYTHONHASHSEED, is that
of the process it is forked from.

Run as a program, this reads orders from one descriptor, a JSON value a line, and writes
`[pid]` and then `[status, seconds of CPU]` to another one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from tests.simulations import ROOT

__all__ = ["Forker", "needs_an_own_start", "seconds_used"]

_READ_AT_THE_START = ("PYTHON", "LANG", "LC_", "TZ")


def needs_an_own_start(variables: Mapping[str, str]) -> bool:
    """Whether Python reads one of the variables when it starts."""
    return any(name.startswith(_READ_AT_THE_START) for name in variables)


_used = 0.0


def seconds_used() -> float:
    """The CPU seconds of all commands that this process has had forked so far."""
    return _used


class Forker:
    """A process that forks commands, one at a time; it is started at the first one.

    A command runs a `module`, as `python -m` does; those `imported` are what most of
    them import.
    """

    def __init__(self, module: str, imported: Iterable[str]) -> None:
        self._module, self._imported = module, tuple(imported)
        self._process: subprocess.Popen[bytes] | None = None
        self._orders: TextIO | None = None
        self._answers: TextIO | None = None
        self._lock = threading.Lock()

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        streams: Sequence[Path],
        limit: float,
    ) -> tuple[int, float]:
        """The status and the seconds of CPU of a command with these arguments.

        `streams` are the files of stdin, stdout and stderr.  Raises `TimeoutExpired`
        after `limit` seconds, when the command has been killed.
        """
        with self._lock:
            orders, answers = self._started()
            order = [[*arguments], str(folder), {**variables}, [*map(str, streams)]]
            print(json.dumps(order), file=orders, flush=True)
            (pid,) = json.loads(answers.readline())
            watch = threading.Timer(limit, _kill, [pid])
            watch.start()
            status, seconds = json.loads(answers.readline())
            is_late = not watch.is_alive()
            watch.cancel()
            global _used
            _used += seconds
        if is_late:
            raise subprocess.TimeoutExpired([self._module, *arguments], limit)
        return status, seconds

    def _started(self) -> tuple[TextIO, TextIO]:
        if self._orders is None or self._answers is None:
            (order, orders), (answers, answer) = os.pipe(), os.pipe()
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "tests.forked"),
                    *(str(order), str(answer), self._module, *self._imported),
                ],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                pass_fds=(order, answer),
            )
            os.close(order)
            os.close(answer)
            self._orders, self._answers = os.fdopen(orders, "w"), os.fdopen(answers)
            atexit.register(self.stop)
        return self._orders, self._answers

    def stop(self) -> None:
        """End it; what it has forked has ended."""
        if self._process and self._orders and self._answers:
            self._orders.close()
            self._answers.close()
            self._process.wait()
        self._process = self._orders = self._answers = None


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)


# ------------------------------------------------------------------ in that process


def _serve(orders: TextIO, answers: TextIO, module: str, imported: list[str]) -> None:
    for name in imported:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in orders:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            orders.close()
            answers.close()
            _become(module, *order)
        print([pid], file=answers, flush=True)
        _, status, used = os.wait4(pid, 0)
        ended = [os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]
        print(json.dumps(ended), file=answers, flush=True)


def _become(
    module: str,
    arguments: list[str],
    folder: str,
    variables: dict[str, str],
    streams: list[str],
) -> None:
    """Be the command, and end as a process does that has just been started."""
    modes = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)
    for number, (file, mode) in enumerate(zip(streams, modes, strict=True)):
        os.dup2(os.open(file, mode), number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering, "utf-8", errors)
        for number, mode, errors, buffering in (
            (0, "r", "strict", -1),
            (1, "w", "strict", -1),
            (2, "w", "backslashreplace", 1),
        )
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = [module, *arguments]
    # A test changes a file within a second, and bytecode would not notice that if the
    # length is the same.
    sys.dont_write_bytecode = True
    os._exit(_ended(_status(module)))


def _status(module: str) -> int:
    """Run it; the status that Python gives to how it ended."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _ended(status: int) -> int:
    # As the interpreter ends: idle threads of pools are told to end, and are awaited.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return status & 0xFF


def _main(order: str, answer: str, module: str, *imported: str) -> None:
    with os.fdopen(int(order)) as orders, os.fdopen(int(answer), "w") as answers:
        _serve(orders, answers, module, [*imported])


if __name__ == "__main__":
    _main(*sys.argv[1:])
