"""Changes whose parts go to two endpoints, on the real API server."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.change_forms import FORMS, an_example, assert_changed_once
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User, operating
from tests.patience import eventually

OPERATOR = Path(__file__).parent / "operators" / "changing.py"


def test_a_change_is_applied_once(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    with operating(OPERATOR, apiserver, namespace, tmp_path) as operator:
        operator.start()
        # A JSON patch adds to a status that is there: it is not at the creation.
        names = [f"create-{form}" for form in FORMS if form != "json"]
        names += [f"update-{form}" for form in FORMS]
        for name in names:
            user.create(an_example(name))
        for name in names:
            eventually(partial(is_handled, user, name))
        for name in names:
            user.edit("fnopexamples", name, {"metadata": {"labels": {"edited": "1"}}})
        for name in names:
            eventually(partial(is_changed, user, name))
        log = "\n".join(operator.lines)
    assert "does not keep" not in log, log
    assert "failed" not in log, log


def is_handled(user: User, name: str) -> bool:
    """Whether the operator has stored its state on the object."""
    found = user.get("fnopexamples", name) or {}
    return "fnop.dev/default" in (found.get("status") or {})


def is_changed(user: User, name: str) -> bool:
    """Whether an object shows its change; it shows nothing else in the end."""
    found = user.get("fnopexamples", name)
    assert found is not None
    try:
        assert_changed_once(name.partition("-")[2], found)
    except AssertionError:
        return False
    return True
