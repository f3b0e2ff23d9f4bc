"""The user that credentials name."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from fnop.adapters.kubernetes.accounts import named_by
from fnop.adapters.serving.certificates import Authority
from fnop.core.handlers.declare.connection import ConnectionInfo, Impersonation
from fnop.interpreters.runtime.clock import EPOCH

SERVER = "https://10.0.0.1:6443"
ACCOUNT = "system:serviceaccount:prod:claims"


def token(claims: Any) -> str:
    parts = (orjson.dumps({"alg": "RS256"}), orjson.dumps(claims), b"signature")
    return ".".join(
        base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts
    )


@pytest.mark.parametrize(
    ("given", "user"),
    [
        (token({"sub": ACCOUNT}), ACCOUNT),
        (token({"sub": ACCOUNT, "aud": ["https://kubernetes.default.svc"]}), ACCOUNT),
        # How others' tokens name their users is for the API server to say.
        (token({"sub": "jane"}), ""),
        (token({"sub": 1}), ""),
        (token({}), ""),
        (token([1]), ""),
        ("opaque", ""),
        ("a.b.c", ""),
        ("a.!!!.c", ""),
        ("..", ""),
    ],
)
def test_the_token_of_a_service_account_names_it(given: str, user: str) -> None:
    assert named_by(ConnectionInfo(server=SERVER, token=given)) == user


def test_a_client_certificate_names_its_user(tmp_path: Path) -> None:
    pair = Authority(EPOCH).for_client("jane", ("dev",))
    (tmp_path / "jane.crt").write_bytes(pair.certificate)
    (tmp_path / "jane.key").write_bytes(pair.key)
    of_files = ConnectionInfo(
        server=SERVER,
        certificate_path=str(tmp_path / "jane.crt"),
        private_key_path=str(tmp_path / "jane.key"),
    )
    as_pem = ConnectionInfo(
        server=SERVER, certificate_data=pair.certificate, private_key_data=pair.key
    )
    as_base64 = ConnectionInfo(
        server=SERVER,
        certificate_data=base64.b64encode(pair.certificate).decode(),
        private_key_data=base64.b64encode(pair.key).decode(),
    )
    assert {named_by(each) for each in (of_files, as_pem, as_base64)} == {"jane"}
    (tmp_path / "jane.crt").write_text("-----BEGIN CERTIFICATE-----\nnone\n")
    assert named_by(of_files) == ""
    (tmp_path / "jane.crt").unlink()
    assert named_by(of_files) == ""


def test_somebody_else_is_impersonated() -> None:
    info = ConnectionInfo(
        server=SERVER,
        token=token({"sub": ACCOUNT}),
        impersonate=Impersonation("jane"),
    )
    assert named_by(info) == "jane"


def test_without_credentials_there_is_no_name() -> None:
    assert named_by(ConnectionInfo(server=SERVER)) == ""
