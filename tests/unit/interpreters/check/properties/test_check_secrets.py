"""Secrets that an operator shows elsewhere, as `fnop check` reports them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

import fnop
from fnop import Registry
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.interpreters.check.campaign.explore import Case, Explorer
from fnop.interpreters.simulation.actions import apply
from tests.simulations import example, manifests_of

DEFINITION = manifests_of("01-minimal")[0]
PASSWORD = 'correct "horse" battery 9431'
HOST = "orders-db.default.svc.cluster.local"


def secret(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "stringData": {"password": PASSWORD, "host": HOST, "db-password": "short"},
    }


def config(name: str, text: str) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"x": text},
    }


def told(
    then: Callable[[str, Any], Any], manifest: dict[str, Any] | None = None
) -> list[str]:
    """The reports about an operator that makes a Secret, and does this."""
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(name: str, logger: Any, **_: object) -> Any:
        await fnop.adopt(secret(f"{name}-secret"))
        found = then(name, logger)
        if isinstance(found, fnop.Effect):
            await found
            return None
        return found

    program = Program(registry.handlers, Settings())
    case = Case(program, (DEFINITION,), (apply(manifest or example()),))
    found = Explorer(case).benign.violations
    return [each.message for each in found if each.property == "keeps_secrets"]


@pytest.mark.parametrize(
    ("then", "where"),
    [
        (lambda name, log: {"dsn": f"app:{PASSWORD}@{HOST}"}, "fnopexamples/example-1"),
        (
            lambda name, log: {"basic": base64.b64encode(PASSWORD.encode()).decode()},
            "fnopexamples/example-1",
        ),
        (
            lambda name, log: fnop.adopt(config(f"{name}-config", PASSWORD)),
            "configmaps/example-1-config",
        ),
        (
            lambda name, log: fnop.event("Made", f"with {PASSWORD}"),
            "events/",
        ),
        (lambda name, log: log.info(f"made {PASSWORD}"), "a line of the log"),
        (lambda name, log: fnop.log("info", "made", pw=PASSWORD), "a line of the log"),
    ],
)
def test_a_secret_that_is_shown_is_told(then: Any, where: str) -> None:
    (message,) = told(then)
    assert message.startswith(where)
    assert message.endswith("shows password of secrets/example-1-secret")


@pytest.mark.parametrize(
    "then",
    [
        lambda name, log: {"secret": f"{name}-secret", "endpoint": HOST},
        lambda name, log: {"state": "short"},
        lambda name, log: fnop.adopt(secret(f"{name}-copy")),
        lambda name, log: log.info(f"made {HOST}"),
    ],
)
def test_what_is_no_secret_may_be_shown(then: Any) -> None:
    assert told(then) == []


RANDOM = "Zr7-pLw2_9kQ-x4Vt"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("SECRET_KEY", RANDOM),
        ("secretKey", RANDOM),
        ("cookie-secret", RANDOM),
        ("signing-key", RANDOM),
        ("ENCRYPTION_KEY", RANDOM),
        ("credentials", RANDOM),
        ("credentials.json", RANDOM),
        (".dockerconfigjson", RANDOM),
        ("private.pem", RANDOM),
        ("id_ed25519", RANDOM),
        ("kubeconfig", RANDOM),
        ("PGPASS", RANDOM),
        ("pw", RANDOM),
        ("DATABASE_URL", f"postgres://app:{RANDOM}@{HOST}/orders"),
    ],
)
def test_usual_keys_of_secrets_are_known(key: str, value: str) -> None:
    assert _told_of(key, value) == [f"fnopexamples/example-1 shows {key} of secrets/x"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ca.crt", RANDOM),
        ("tls.crt", RANDOM),
        ("keyId", RANDOM),
        ("id_ed25519.pub", RANDOM),
        ("username", RANDOM),
        ("TOKEN_URL", f"https://{HOST}/oauth/token"),
        ("DATABASE_URL", f"postgres://{HOST}:5432/orders"),
    ],
)
def test_other_keys_of_secrets_are_none(key: str, value: str) -> None:
    assert _told_of(key, value) == []


@pytest.mark.parametrize("secret_", [True, False])
@pytest.mark.parametrize(
    "write", [bytes.hex, lambda raw: f"Pw-{base64.b64encode(raw).decode()}"]
)
def test_what_was_drawn_as_a_secret_is_one_under_any_key(
    write: Callable[[bytes], str], secret_: bool
) -> None:
    registry = Registry()

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(**_: object) -> Any:
        value = write(await fnop.random(18, secret=secret_))
        await fnop.adopt({**secret("x"), "stringData": {"seed": value}})
        return {"shown": value}

    told = ["fnopexamples/example-1 shows seed of secrets/x"] if secret_ else []
    assert _leaks_of(registry) == told


def _told_of(key: str, value: str) -> list[str]:
    """The reports about an operator that shows this value of a Secret."""
    registry = Registry()
    made = {**secret("x"), "stringData": {key: value}}

    @fnop.on.create("fnopexamples", registry=registry)
    async def make(**_: object) -> Any:
        await fnop.adopt(made)
        return {"shown": value}

    return _leaks_of(registry)


def _leaks_of(registry: Registry) -> list[str]:
    case = Case(
        Program(registry.handlers, Settings()), (DEFINITION,), (apply(example()),)
    )
    found = Explorer(case).benign.violations
    return [each.message for each in found if each.property == "keeps_secrets"]


def test_what_the_user_has_written_openly_is_no_secret() -> None:
    manifest = example()
    manifest["spec"] = {**manifest["spec"], "field": PASSWORD}
    assert told(lambda name, log: {"shown": PASSWORD}, manifest) == []
