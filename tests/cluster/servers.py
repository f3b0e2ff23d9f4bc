"""Real API servers that are killed while others work with them, and come back."""

from __future__ import annotations

import asyncio
import shutil
import signal
import ssl
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.envtest import (
    ApiServer,
    admin_tls,
    apiserver_flags,
    assets,
    etcd_flags,
    free_ports,
    has_manager,
    http_ok,
    make_certificates,
    manager_flags,
    process,
    wait_until,
    write_kubeconfigs,
)

__all__ = ["Servers"]


class Servers:
    """etcd and kube-apiserver in a folder, each of which can be killed and started.

    With `managed` the controllers can be started, too, if there are any.
    """

    def __init__(self, folder: Path, *, managed: bool = False) -> None:
        make_certificates(folder / "pki")
        etcd_port, peer_port, port, manager_port = free_ports(4)
        self.managed = managed and has_manager()
        self.api = ApiServer(f"https://127.0.0.1:{port}", folder)
        write_kubeconfigs(folder, self.api.url)
        tls, anyone = admin_tls(folder / "pki"), ssl._create_unverified_context()
        self._folder = folder
        self._flags = {
            "etcd": etcd_flags(folder, etcd_port, peer_port),
            "kube-apiserver": apiserver_flags(
                folder, port, etcd_port, managed=self.managed
            ),
        }
        if self.managed:
            self._flags["kube-controller-manager"] = manager_flags(folder, manager_port)
        self._is_ready: dict[str, Callable[[], bool]] = {
            "etcd": lambda: http_ok(etcd_port, "/health"),
            "kube-apiserver": lambda: (
                http_ok(port, "/readyz", tls)
                and http_ok(port, "/api/v1/namespaces/default", tls)
            ),
            "kube-controller-manager": lambda: http_ok(
                manager_port, "/healthz", anyone
            ),
        }
        self._running: dict[str, tuple[subprocess.Popen[bytes], ExitStack]] = {}
        # The system ends a process with the thread that has started it.
        self._thread = ThreadPoolExecutor(1, "servers")

    async def aside(self, work: Callable[[], None]) -> None:
        """Do it while the loop goes on, in a thread that stays."""
        await asyncio.get_running_loop().run_in_executor(self._thread, work)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, in a possible order of starting."""
        return tuple(self._flags)

    def start(self, *names: str) -> None:
        """Start them, and wait until all is ready."""
        for name in names:
            stack, log = ExitStack(), self._folder / f"{name}.log"
            binary = assets() / name
            child = stack.enter_context(process(binary, self._flags[name], log))
            self._running[name] = child, stack
            wait_until(self._is_ready[name], child, log)
        child, log = self._running["kube-apiserver"][0], self._folder / "etcd.log"
        wait_until(self._is_ready["kube-apiserver"], child, log)

    def end(self, *names: str, by: signal.Signals = signal.SIGKILL) -> None:
        """End them, without a warning unless `by` is one."""
        for name in names:
            self._running[name][0].send_signal(by)
        for name in names:
            child, stack = self._running.pop(name)
            child.wait()
            stack.close()

    def back_up(self) -> None:
        """Keep what etcd has, which must not run."""
        shutil.copytree(self._folder / "etcd", self._folder / "backup")

    def restore(self) -> None:
        """Let etcd, which must not run, have what it had then."""
        shutil.rmtree(self._folder / "etcd")
        (self._folder / "backup").rename(self._folder / "etcd")

    def close(self) -> None:
        self.api.close()
        self.end(*self._running)
        self._thread.shutdown()
