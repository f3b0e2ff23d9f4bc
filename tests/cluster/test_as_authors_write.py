"""Code that authors write of their own accord, on the real API server."""

from __future__ import annotations

from pathlib import Path

from tests.author_scenarios import (
    OPERATOR,
    SLIPS,
    SPEED,
    check,
    check_slips,
    long_subject,
    subject,
)
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.patience import eventually


def test_an_operator_as_authors_write_it(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "authors.py"
    file.write_text(OPERATOR)
    user = User(apiserver, namespace)
    user.define()
    user.create(SPEED)
    with operating(file, apiserver, namespace, tmp_path) as operator:
        operator.start()
        user.create(subject())

        def ticks() -> int:
            found = user.get("fnopexamples", "example-1") or {}
            status = found.get("status") or {}
            return status.get("ticks", 0) if "create" in status else 0

        eventually(lambda: ticks() >= 3, otherwise=lambda: "\n".join(operator.lines))
        found = user.get("fnopexamples", "example-1")
        assert found is not None
        adopted, applied = (
            user.get("configmaps", name) for name in ("adopted", "applied")
        )
        check(found, adopted, applied)


def test_slips_as_authors_make_them(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "slips.py"
    file.write_text(SLIPS)
    user = User(apiserver, namespace)
    user.define()
    with operating(file, apiserver, namespace, tmp_path) as operator:
        operator.start()
        user.create(long_subject())

        def is_told() -> bool:
            status = (user.get("fnopexamples", "example-1") or {}).get("status") or {}
            return "create" in status and bool(status.get("conditions"))

        eventually(is_told, otherwise=lambda: "\n".join(operator.lines))
        found = user.get("fnopexamples", "example-1")
        assert found is not None
        check_slips(found)
        assert user.get("configmaps", "lost") is None
