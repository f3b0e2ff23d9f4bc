"""The TLS settings of a connection, the same as kubectl's.

Certificates and keys are read when the settings are made, and never written to a disk.
As in Go, each certificate of a bundle may end a chain, a name in the subject does not
count, and a broken certificate in a bundle is skipped.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from binascii import Error as NoBase64
from pathlib import Path
from typing import Any

from fnop.adapters.kubernetes.memory_files import file_with
from fnop.core.handlers.declare.connection import ConnectionInfo
from fnop.core.values.errors import text_of
from fnop.effects.regexes import regex

__all__ = ["CertificateProblem", "files_of", "tls_context"]

_PEM = regex("-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
# Of a client's two files, Go reads the certificates from one, and the key from the
# other.
_BLOCK = regex(rb"(?ms)^-----BEGIN ([^-]+)-----.+?^-----END \1-----")


class CertificateProblem(Exception):
    """A certificate or a key cannot be used; the text has its name and the reason."""


def files_of(info: ConnectionInfo) -> tuple[Path, ...]:
    """The files behind a connection; if they change, the connection is outdated."""
    paths = info.ca_path, info.certificate_path, info.private_key_path
    return tuple(Path(each) for each in paths if each)


def tls_context(info: ConnectionInfo) -> ssl.SSLContext:
    """The settings for an address with https.  Raises `CertificateProblem`."""
    context = _Named(ssl.PROTOCOL_TLS_CLIENT)
    context.name = info.tls_server_name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.hostname_checks_common_name = False
    _allow_old_keys(context)
    # Go takes each given certificate for a root, and has no strict mode.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if info.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, _content(info.ca_data, info.ca_path, "authority's certificate"))
    certificate = _content(
        info.certificate_data, info.certificate_path, "client certificate"
    )
    key = _content(info.private_key_data, info.private_key_path, "client's private key")
    if certificate is not None and key is not None:
        _identify(context, certificate, key)
    return context


def _allow_old_keys(context: ssl.SSLContext) -> None:
    """Accept RSA keys from 1024 bits on, as Go does; Python's own limit is 2048.

    The ciphers do not change, and signatures of SHA-1 are still refused.
    """
    names = ":".join(each["name"] for each in context.get_ciphers())
    context.set_ciphers(f"{names}:@SECLEVEL=1")


class _Named(ssl.SSLContext):
    """Settings with the server's name in the certificate, for any address.

    A dot at its end marks an absolute name, and is in no certificate.
    """

    name: str | None

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        name = self.name or options.get("server_hostname")
        name = name.removesuffix(".") if isinstance(name, str) else name
        return super().wrap_bio(*args, **{**options, "server_hostname": name})


def _content(data: str | bytes | None, path: str | None, what: str) -> bytes | None:
    """PEM, decoded from base64 if it is not PEM yet; empty data counts as missing."""
    if data:
        raw = data.encode() if isinstance(data, str) else data
        if b"-----BEGIN" in raw:
            return raw
        try:
            return b64decode(raw)
        except (NoBase64, ValueError):
            raise CertificateProblem(f"the {what} is neither PEM nor base64") from None
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        why = problem.strerror or text_of(problem)
        raise CertificateProblem(f"the {what} {path} cannot be read: {why}") from None


def _trust(context: ssl.SSLContext, bundle: bytes | None) -> None:
    if bundle is None:
        context.load_default_certs()
        return
    found = _PEM.findall(bundle.decode("ascii", "replace"))
    problems = []
    for each in found:
        try:
            context.load_verify_locations(cadata=each)
        except ssl.SSLError as problem:
            problems.append(problem)
    if len(problems) == len(found):
        why = f": {_reason(problems[0])}" if problems else " (-----BEGIN CERTIFICATE)"
        raise CertificateProblem(f"the authority's certificate is not PEM{why}")


def _identify(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    try:
        with file_with(_certificates_in(certificate) + _key_in(key)) as path:
            # Without a passphrase, it would prompt for one at the terminal.
            context.load_cert_chain(path, password=_refuse_passphrase)
    except ssl.SSLError as problem:
        raise CertificateProblem(
            "the client certificate and its private key cannot be used: "
            f"{_reason(problem)}"
        ) from None


def _certificates_in(content: bytes) -> bytes:
    found = [each[0] for each in _BLOCK.finditer(content) if each[1] == b"CERTIFICATE"]
    if not found:
        raise CertificateProblem(
            "the client certificate is not PEM (-----BEGIN CERTIFICATE)"
        )
    return b"\n".join([*found, b""])


def _key_in(content: bytes) -> bytes:
    for each in _BLOCK.finditer(content):
        if each[1].endswith(b"PRIVATE KEY"):
            return each[0] + b"\n"
    raise CertificateProblem(
        "the client's private key is not PEM (-----BEGIN PRIVATE KEY)"
    )


def _refuse_passphrase() -> str:
    raise CertificateProblem(
        "the client's private key has a passphrase; decrypt it (openssl pkey), as for "
        "kubectl"
    )


def _reason(problem: ssl.SSLError) -> str:
    reason = (problem.reason or "").replace("_", " ").lower()
    return reason or text_of(problem)
