"""The legacy `auth-provider: oidc` of a kubeconfig, which kubectl still supports.

An expired ID token is renewed with the refresh token. A provider may accept each
refresh token only once. So the new one is written back to the kubeconfig, under
kubectl's own lock; otherwise kubectl would be locked out afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml
from msgspec import Struct

from fnop.adapters.kubernetes.addresses import parsed
from fnop.adapters.kubernetes.kubeconfig_files import text_in
from fnop.adapters.kubernetes.proxies import proxy_for
from fnop.core.values.errors import text_of
from fnop.effects.values import without_userinfo
from fnop.interpreters.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import aiohttp

__all__ = ["Home", "OidcProblem", "expiry_of", "refreshed"]

# The seconds before its expiry at which a token is renewed, as in kubectl.
EXPIRY_SECONDS = 10.0
REQUEST_SECONDS = 30.0
# The lock of a kubeconfig is held during writing; this is the longest wait for it.
LOCK_SECONDS, LOCK_STEP_SECONDS = 5.0, 0.05
_COMPLAINT = 300

Section = Mapping[str, Any]


class OidcProblem(Exception):
    """There is no valid ID token; the text has the reason."""


class Home(Struct, frozen=True):
    """The place of a user in a kubeconfig, where new tokens are written."""

    file: Path
    user: str


class _Tokens(Struct, frozen=True):
    id: str
    refresh: str | None


async def refreshed(provider: Section, home: Home) -> dict[str, Any]:
    """A valid ID token, as fields of a `ConnectionInfo`.  Raises `OidcProblem`."""
    config = provider.get("config")
    config = config if isinstance(config, dict) else {}
    token, wall = config.get("id-token"), SystemClock().now().wall
    expiry = expiry_of(token) if token else None
    if not token or (expiry is not None and expiry - EXPIRY_SECONDS <= wall):
        for key in ("idp-issuer-url", "client-id", "refresh-token"):
            if not config.get(key):
                raise OidcProblem(
                    f"the ID token of its auth-provider has expired, and there is no "
                    f"{key} to renew it with; log in again"
                )
        found = await _refresh_tokens(config)
        await _write_tokens(home, found)
        token, expiry = found.id, expiry_of(found.id)
    if expiry is None:
        return {"token": token}
    moment = datetime.fromtimestamp(expiry - EXPIRY_SECONDS, UTC)
    return {"token": token, "expiration": moment}


def expiry_of(token: str) -> float | None:
    """The Unix time at which a JSON web token expires (RFC 7519: exp).

    None if it has no expiry, or is not such a token.

    >>> expiry_of("e30.eyJleHAiOiAxMjN9.x"), expiry_of("opaque")
    (123.0, None)
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (NoBase64, ValueError, KeyError, TypeError):
        return None


# ------------------------------------------------------------------ the provider


async def _refresh_tokens(config: Section) -> _Tokens:
    """New tokens for the refresh token."""
    # importing takes a third of a second, and only this code needs it so early
    import aiohttp

    issuer = str(config["idp-issuer-url"]).rstrip("/")
    connector = aiohttp.TCPConnector(ssl=_context(config))
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    try:
        proxy = proxy_for(parsed(issuer), os.environ)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, proxy=proxy
        ) as session:
            known = f"{issuer}/.well-known/openid-configuration"
            status, found = await _answer(session.get(known))
            endpoint = found.get("token_endpoint")
            if status >= 300 or not isinstance(endpoint, str):
                raise OidcProblem(f"{known} names no token_endpoint (HTTP {status})")
            return await _request_tokens(session, endpoint, config)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as problem:
        why = text_of(problem) or type(problem).__name__
        raise OidcProblem(
            f"the identity provider {without_userinfo(issuer)} does not answer: {why}"
        ) from None


async def _request_tokens(
    session: aiohttp.ClientSession, endpoint: str, config: Section
) -> _Tokens:
    """Send the request with the client's secret in the header, or else as a parameter.

    A public client has no secret, and names itself (RFC 6749: 2.3.1 and 3.2.1).
    """
    form = {"grant_type": "refresh_token", "refresh_token": config["refresh-token"]}
    client, secret = str(config["client-id"]), str(config.get("client-secret") or "")
    named = {**form, "client_id": client}
    attempts: list[tuple[dict[str, str], dict[str, str]]] = [({}, named)]
    if secret:
        import aiohttp

        basic = aiohttp.encode_basic_auth(quote(client, ""), quote(secret, ""))
        attempts = [
            ({"Authorization": basic}, form),
            ({}, {**named, "client_secret": secret}),
        ]
    status, found = 0, dict[str, Any]()
    for headers, data in attempts:
        status, found = await _answer(
            session.post(endpoint, data=data, headers=headers)
        )
        if status < 300:
            break
    else:
        said = " ".join(str(found.get(e) or "") for e in ("error", "error_description"))
        raise OidcProblem(
            f"the identity provider refuses to renew the ID token (HTTP {status}): "
            f"{said.strip()[:_COMPLAINT]}; log in again"
        )
    if not isinstance(found.get("id_token"), str):
        raise OidcProblem(
            "the identity provider answers no id_token; log in with the scope openid"
        )
    return _Tokens(found["id_token"], found.get("refresh_token") or None)


async def _answer(request: Any) -> tuple[int, dict[str, Any]]:
    async with request as response:
        text = await response.read()
    with suppress(ValueError):
        found = json.loads(text)
        return response.status, found if isinstance(found, dict) else {}
    return response.status, {}


def _context(config: Section) -> Any:
    """TLS settings that trust the provider's authority, if one is given."""
    import ssl

    data = config.get("idp-certificate-authority-data")
    path = config.get("idp-certificate-authority")
    if not data and not path:
        return True
    try:
        pem = b64decode(data) if data else Path(str(path)).read_bytes()
        return ssl.create_default_context(cadata=pem.decode("ascii", "replace"))
    except (OSError, ValueError) as problem:
        raise OidcProblem(
            "the authority's certificate of its auth-provider (idp-certificate-"
            f"authority) cannot be used: {text_of(problem)}"
        ) from None


# ------------------------------------------------------------------ the kubeconfig


async def _write_tokens(home: Home, tokens: _Tokens) -> None:
    """Write the tokens into the user's entry, under the lock that kubectl takes."""
    changes = {"id-token": tokens.id}
    changes |= {"refresh-token": tokens.refresh} if tokens.refresh else {}
    lock = Path(f"{home.file}.lock")
    try:
        async with asyncio.timeout(LOCK_SECONDS):
            while not _is_taken(lock):
                await asyncio.sleep(LOCK_STEP_SECONDS)
    except TimeoutError:
        raise OidcProblem(
            f"the new tokens cannot be written: {lock} exists; remove it if no kubectl "
            "runs"
        ) from None
    except OSError as problem:
        raise _unwritten(home, problem) from None
    try:
        _change(home, changes)
    except (OSError, yaml.YAMLError) as problem:
        raise _unwritten(home, problem) from None
    finally:
        with suppress(OSError):
            lock.unlink()


def _unwritten(home: Home, problem: BaseException) -> OidcProblem:
    why = getattr(problem, "strerror", None) or text_of(problem)
    return OidcProblem(f"the new tokens cannot be written to {home.file}: {why}")


def _is_taken(lock: Path) -> bool:
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _change(home: Home, changes: Mapping[str, str]) -> None:
    """Change the provider's settings of one user; keep everything else."""
    document = yaml.safe_load(text_in(home.file.read_bytes()))
    for each in document["users"]:
        if each.get("name") == home.user:
            each["user"]["auth-provider"]["config"].update(changes)
            break
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    with _replacement_of(Path(os.path.realpath(home.file))) as file:
        file.write_text(text, encoding="utf-8")


@contextmanager
def _replacement_of(file: Path) -> Iterator[Path]:
    """A file that replaces another one atomically, with the same mode."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    os.close(handle)
    made = Path(name)
    try:
        yield made
        made.chmod(file.stat().st_mode & 0o7777)
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)
