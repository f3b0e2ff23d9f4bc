"""Commands without a home, a user's name, a writable folder, a locale, a time zone.

As in OpenShift's restricted security context constraint: a number without a user, an
arbitrary group, a read-only root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.commands import MINIMAL, closed_port, heard, kubeconfig, manifest, write
from tests.patience import patience
from tests.simulations import DEFINITION, ROOT, example

UID, GID = 54321, 54322
# The mounts are remounted as far as this process may do so; then all is as in a pod
# whose root filesystem is read-only, and that has no volumes.
BARE = """
for place in $(awk '{print $5}' /proc/self/mountinfo); do
  mount -o remount,ro,bind "$place" 2>/dev/null || true
done
exec "$@"
"""
VARIABLES = {
    "LC_ALL": "POSIX",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONPATH": str(ROOT),
    "PYTHONUTF8": "0",
    "TERM": "dumb",
    "TMPDIR": "/nonexistent",
    "TZ": "No/Where",
}


def begun(folder: Path, *command: str) -> subprocess.Popen[str]:
    """A command in such a place; its output is one stream."""
    return subprocess.Popen(
        [
            *("unshare", "--user", "--keep-caps", "--mount"),
            *(f"--map-user={UID}", f"--map-group={GID}"),
            *("sh", "-c", BARE, "sh", *command),
        ],
        cwd=folder,
        env={"PATH": os.defpath, **VARIABLES},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="ascii",
    )


def bare(folder: Path, *command: str) -> tuple[int, str]:
    """The status and the whole output of a command in such a place."""
    with begun(folder, *command) as process:
        try:
            out, _ = process.communicate(timeout=patience(30))
        finally:
            process.kill()
    return process.returncode, out


@cache
def hindrance() -> str:
    """The reason why this machine has no such place; "" if it has one."""
    if shutil.which("unshare") is None:
        return "there is no command unshare"
    try:
        pwd.getpwuid(UID)
        return f"{UID} is a user here"
    except KeyError:
        pass
    status, out = bare(Path("/"), "sh", "-c", "id -u; [ -w . ] || echo ro")
    if (status, out.split()) != (0, [str(UID), "ro"]):
        return f"there are no user namespaces here: {out.strip()}"
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if why := hindrance():
        pytest.skip(why)
    write(
        tmp_path,
        "operator.py",
        """
        import fnop

        @fnop.on.startup()
        def begin(logger):
            logger.info("ready")

        @fnop.on.create("fnopexamples")
        def created(logger):
            logger.info("caf\\u00e9")
        """,
    )
    manifest(tmp_path, "object.yaml", DEFINITION, example())
    kubeconfig(tmp_path, f"http://127.0.0.1:{closed_port()}")
    return tmp_path


def fnop(folder: Path, *arguments: str) -> tuple[int, str]:
    command = (sys.executable, "-P", "-m", "fnop", *arguments)
    status, out = bare(folder, *command)
    assert "Traceback" not in out, out
    return status, out


@pytest.mark.parametrize("more", [(), ("--peering=default",), ("--leader-elect",)])
def test_an_operator_begins(folder: Path, more: tuple[str, ...]) -> None:
    arguments = ("run", "operator.py", *more, "--kubeconfig=kubeconfig")
    with begun(folder, sys.executable, "-P", "-m", "fnop", *arguments) as process:
        try:
            heard(process, "startup handler begin succeeded")
            heard(process, "cannot be reached")
        finally:
            process.kill()


OFFLINE = [
    ("run", "operator.py", "--peering=x", "--simulate", "object.yaml"),
    (
        "check",
        "operator.py",
        "--object=object.yaml",
        "--budget=9",
        "--fast",
        "--jobs=2",
    ),
    ("rbac", "operator.py", "--object=object.yaml"),
]


@pytest.mark.parametrize("arguments", OFFLINE, ids=lambda each: each[0])
def test_a_command_without_a_cluster_succeeds(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    status, out = fnop(folder, *arguments)
    assert status == 0, out


ONLINE = [
    ("plan", "operator.py"),
    ("freeze", "-A"),
    ("uninstall", "operator.py"),
    ("explain", "fnopexamples/x"),
    ("rbac", "operator.py", "--object=object.yaml", "--verify"),
]


@pytest.mark.parametrize("arguments", ONLINE, ids=lambda each: each[0])
def test_a_command_tells_of_the_cluster_alone(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    status, out = fnop(folder, *arguments, "--kubeconfig=kubeconfig")
    assert status == 1, out
    assert "cannot" in out


def test_what_is_to_be_written_is_told(folder: Path) -> None:
    status, out = fnop(folder, "new", "shop")
    assert (status, out) == (1, "fnop: shop: Read-only file system\n")


def test_a_working_folder_that_is_gone_is_not_missed(tmp_path: Path) -> None:
    operator = write(tmp_path, "operator.py", MINIMAL)
    objects = manifest(tmp_path, "object.yaml", DEFINITION, example())
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        [
            *("sh", "-c", 'rmdir ../gone; exec "$@"', "sh"),
            *(sys.executable, "-P", "-m", "fnop", "check", str(operator)),
            *("--object", str(objects), "--budget=9", "--fast", "-q"),
        ],
        cwd=gone,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=patience(30),
        check=False,
    )
    assert done.returncode == 0, done.stderr
