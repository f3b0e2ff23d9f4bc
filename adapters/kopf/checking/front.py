"""The simulated world of the present process, served on this machine for its clients.

The clients of an operator find it through `KUBECONFIG`. Each process of the operator
has a token of its own: whatever a former process still sends is refused.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from fnop.adapters.kopf.checking.door import PATIENCE_SECONDS, Door
from fnop.adapters.serving.api_server import Credentials, HttpServer
from fnop.adapters.serving.cluster_host import Following, Host
from fnop.adapters.serving.cluster_kubeconfig import kubeconfig
from fnop.adapters.serving.live_cluster import OF_PODS
from fnop.interpreters.cluster import empty_cluster
from fnop.interpreters.cluster.values.status import failure
from fnop.interpreters.runtime.clock import SystemClock
from fnop.interpreters.runtime.protocol import ApiRequest, ApiResponse, User
from fnop.interpreters.simulation.director import Crashed

__all__ = ["Front"]

Answer = Callable[[ApiRequest], ApiResponse]


class _Gate(Host):
    """Passes each request on through the door of the present process."""

    def __init__(self) -> None:
        super().__init__(empty_cluster(), SystemClock())
        self.inside: tuple[Door, Answer] | None = None

    def answer(self, request: ApiRequest) -> ApiResponse | asyncio.Task[ApiResponse]:
        return asyncio.get_running_loop().create_task(self._asked(request))

    async def _asked(self, request: ApiRequest) -> ApiResponse:
        inside = self.inside
        if inside is None:
            return _gone()
        door, answer = inside
        answered: Future[ApiResponse] = Future()
        door.ask(partial(self._answer_to, answered, inside, answer, request))
        try:
            return await asyncio.wait_for(
                asyncio.wrap_future(answered), PATIENCE_SECONDS
            )
        except TimeoutError:
            return _gone()

    def _answer_to(
        self,
        answered: Future[ApiResponse],
        inside: tuple[Door, Answer],
        answer: Answer,
        request: ApiRequest,
    ) -> None:
        """Answer a request, in the simulator's thread."""
        if not answered.set_running_or_notify_cancel():
            return  # its client has waited for too long
        try:
            answered.set_result(answer(request) if inside is self.inside else _gone())
        except BaseException as problem:
            answered.set_result(_gone())
            if isinstance(problem, Crashed) or not isinstance(problem, Exception):
                raise

    def follow(self, request: ApiRequest, follower: Any) -> ApiResponse | Following:
        """Refuse a watch: its events would have to wait for the next handler."""
        return _refused("watch")

    def follow_log(self, request: ApiRequest, follower: Any) -> ApiResponse | None:
        return _refused("log stream")


def _gone() -> ApiResponse:
    return failure(
        503, "ServiceUnavailable", "no handler runs here any longer"
    ).response


def _refused(what: str) -> ApiResponse:
    text = f"fnop check answers no {what} of an operator's own client"
    return failure(405, "MethodNotAllowed", text).response


class Front:
    """The server, and the kubeconfig that leads to it; one for all processes."""

    def __init__(self) -> None:
        self._gate = _Gate()
        self._number = 0
        self._server = HttpServer(self._gate, self._login)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fnop-front", daemon=True
        )
        self._folder = tempfile.TemporaryDirectory(prefix="fnop-")
        self._kubeconfig = Path(self._folder.name) / "kubeconfig"
        self._thread.start()
        port = self._on_loop(self._server.start("127.0.0.1", 0))
        self._url = f"http://127.0.0.1:{port}"
        names = ("KUBECONFIG", *OF_PODS)
        self._environment = {e: os.environ.pop(e) for e in names if e in os.environ}
        os.environ["KUBECONFIG"] = str(self._kubeconfig)
        self._write_kubeconfig()

    def _on_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _login(self, given: Credentials) -> User | ApiResponse | None:
        token = given.authorization
        if token is not None and token != f"Bearer {self._number}":
            return failure(401, "Unauthorized", "Unauthorized").response
        return None

    def serve(self, door: Door, answer: Answer) -> None:
        """Serve the world of another process from now on."""
        self._number += 1
        self._write_kubeconfig()
        self._gate.inside = door, answer

    def _write_kubeconfig(self) -> None:
        config = kubeconfig(self._url)
        config["users"][0]["user"]["token"] = str(self._number)
        self._kubeconfig.write_text(json.dumps(config), "utf-8")

    def shut(self) -> None:
        """Refuse everything until the next process begins."""
        self._number += 1
        self._gate.inside = None

    def close(self) -> None:
        """End all connections and the thread, and restore the environment."""
        self.shut()
        os.environ.pop("KUBECONFIG", None)
        os.environ.update(self._environment)
        self._on_loop(self._server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()
