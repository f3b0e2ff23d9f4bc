"""The user that credentials name, as the API server will identify it."""

from __future__ import annotations

import binascii
from base64 import b64decode, urlsafe_b64decode
from pathlib import Path

import orjson

from fnop.core.handlers.declare.connection import ConnectionInfo

__all__ = ["named_by"]


def named_by(info: ConnectionInfo) -> str:
    """The user's name in a login; "" if the login does not contain it.

    A token of a service account names it as its subject (RFC 7519), and a client
    certificate as its common name (Kubernetes: authentication).

    >>> named_by(ConnectionInfo(server="https://a", username="jane", password="x"))
    'jane'
    """
    if info.impersonate is not None:
        return info.impersonate.user
    if info.token is not None:
        return _subject_of(info.token)
    if info.username is not None:
        return info.username
    return _common_name(_certificate_of(info))


def _subject_of(token: str) -> str:
    """The subject of a token of a service account.

    Other tokens name their users as the API server is configured to read them.

    >>> _subject_of("opaque")
    ''
    """
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        text = urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = orjson.loads(text)
    except (binascii.Error, ValueError):
        return ""
    subject = claims.get("sub") if isinstance(claims, dict) else None
    named = subject if isinstance(subject, str) else ""
    return named if named.startswith("system:serviceaccount:") else ""


def _certificate_of(info: ConnectionInfo) -> bytes:
    data = info.certificate_data
    try:
        if data:
            raw = data.encode() if isinstance(data, str) else data
            return raw if b"-----BEGIN" in raw else b64decode(raw)
        if info.certificate_path:
            return Path(info.certificate_path).read_bytes()
    except (OSError, ValueError):
        pass
    return b""


def _common_name(content: bytes) -> str:
    """The common name of the first certificate; "" without the library to read it."""
    if b"-----BEGIN CERTIFICATE-----" not in content:
        return ""
    try:
        from cryptography import x509
    except ImportError:
        return ""
    try:
        certificate = x509.load_pem_x509_certificate(content)
    except ValueError:
        return ""
    names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""
