"""`kopf.testing`: an operator in the background of a test, by its command line."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from types import TracebackType
from typing import Any

import click
import click.testing

from fnop.adapters.common.loading import LoadProblem
from fnop.adapters.kopf.commands.cli import CliControls, main
from fnop.adapters.kopf.declaring.registry import OperatorRegistry
from fnop.adapters.kopf.declaring.settings import OperatorSettings

__all__ = ["KopfRunner"]


class KopfRunner:
    """Runs a command such as `run -A operator.py` for the duration of a block.

        with KopfRunner(["run", "-A", "operator.py"], timeout=60) as runner:
            ...  # act on the cluster, and wait for the consequences
        assert runner.exit_code == 0
        assert "created" in runner.output

    `args` are those of the command line, as one list or text. At the end of the block
    the operator is stopped; `timeout` is the time in seconds that it has for this. With
    `reraise`, its error is raised then. `registry` and `settings` replace its own.
    """

    def __init__(
        self,
        *args: Any,
        reraise: bool = True,
        timeout: float | None = None,
        registry: OperatorRegistry | None = None,
        settings: OperatorSettings | None = None,
        **kwargs: Any,
    ) -> None:
        self._args, self._kwargs = args, kwargs
        self._reraise, self._timeout = reraise, timeout
        self._registry, self._settings = registry, settings
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._ended = threading.Event()
        # It has the result of the command, or the error that has kept it from one.
        self.future: concurrent.futures.Future[click.testing.Result]
        self.future = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, name="kopf-runner")

    def __enter__(self) -> KopfRunner:
        self._thread.start()
        while not (self._ready.wait(0.1) or self._ended.is_set()):
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        steps: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(self._timeout)
        if self._thread.is_alive():
            raise RuntimeError(
                f"the operator has not stopped within {self._timeout:g} s"
                if self._timeout is not None
                else "the operator has not stopped"
            )
        if self._reraise and problem is None and self.exception is not None:
            raise self.exception

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        controls = CliControls(
            registry=self._registry,
            settings=self._settings,
            stop_flag=self._stop,
            ready_flag=self._ready,
            loop=loop,
        )
        try:
            runner = click.testing.CliRunner()
            found = runner.invoke(main, *self._args, **self._kwargs, obj=controls)
        except BaseException as problem:
            self.future.set_exception(problem)
        else:
            self.future.set_result(found)
        finally:
            self._ended.set()
            _close(loop)

    def _found(self) -> click.testing.Result:
        if not self.future.done():
            raise RuntimeError("the operator has not ended yet")
        return self.future.result()

    @property
    def output(self) -> str:
        """All that it has printed and logged."""
        return self._found().output

    @property
    def stdout(self) -> str:
        """Its standard output."""
        return self._found().stdout

    @property
    def stdout_bytes(self) -> bytes:
        """Its standard output, undecoded."""
        return self._found().stdout_bytes

    @property
    def stderr(self) -> str:
        """Its standard error."""
        return self._found().stderr

    @property
    def stderr_bytes(self) -> bytes | None:
        """Its standard error, undecoded."""
        return self._found().stderr_bytes

    @property
    def exit_code(self) -> int:
        """Its exit status."""
        return self._found().exit_code

    @property
    def exception(self) -> BaseException | None:
        """The error that has ended it, as it was raised in the operator.

        The command makes an exit status of it; that of a wrong command line is left.
        """
        found = self._found().exception
        if not isinstance(found, SystemExit):
            return found
        problem = found.__context__
        if problem is None or isinstance(problem, click.ClickException):
            return found
        if isinstance(problem, LoadProblem) and problem.__cause__ is not None:
            return problem.__cause__
        return problem

    @property
    def exc_info(self) -> Any:
        """The error that has ended it, with its class and its traceback."""
        return self._found().exc_info


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """End what the operator has left on its loop."""
    with contextlib.suppress(Exception):
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()
