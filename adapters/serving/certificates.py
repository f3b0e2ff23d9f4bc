"""Certificate authorities: of a simulated cluster, and of the webhooks of an operator.

Needs the extra `fnop[tls]`: the library `cryptography`, which is imported when the
first certificate is made.
"""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from fnop.adapters.kubernetes.memory_files import file_with

__all__ = ["Authority", "Pair", "TlsMissing", "server_context"]

# The longest life of any simulated cluster.
VALID_SECONDS = 3650 * 86_400.0
# A certificate is valid from before its creation: clocks differ.
SKEW_SECONDS = 3_600.0


class TlsMissing(Exception):
    """The library that makes certificates is not installed."""


class Pair(Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates of servers and of clients; `now` is in Unix seconds.

    The authority is a new one, valid for a number of `seconds`, or a `given` one. It
    `begins` and `ends` in Unix seconds. Raises `TlsMissing` if the library is not
    installed, and `ValueError` if the given one is not an authority.
    """

    def __init__(
        self,
        now: float,
        seconds: float = VALID_SECONDS,
        name: str = "fnop",
        given: Pair | None = None,
    ) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives import hashes, serialization
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError as problem:
            raise TlsMissing(
                "TLS needs the library cryptography; pip install 'fnop[tls]'"
            ) from problem
        self._x509, self._hashes, self._ec = x509, hashes, ec
        self._serialization = serialization
        self.begins = now - SKEW_SECONDS
        self.ends = now + seconds
        self._key: Any
        self._given = given
        if given is not None:
            self._take(given)
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = self._x509_name(name, ())
        usage = self._usage(key_cert_sign=True, crl_sign=True)
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.certificate = self._sign(builder.add_extension(usage, critical=True))

    def _take(self, given: Pair) -> None:
        x509 = self._x509
        found = x509.load_pem_x509_certificate(given.certificate)
        self._key = self._serialization.load_pem_private_key(given.key, None)
        if found.public_key() != self._key.public_key():
            raise ValueError("the key is not that of the certificate")
        try:
            found_in = found.extensions.get_extension_for_class(x509.BasicConstraints)
            is_authority = found_in.value.ca
        except x509.ExtensionNotFound:  # as in many certificates of servers
            is_authority = False
        if not is_authority:
            raise ValueError("the certificate is not that of an authority")
        self._name = found.subject
        self.begins = found.not_valid_before_utc.timestamp()
        self.ends = found.not_valid_after_utc.timestamp()
        self.certificate = given.certificate

    @property
    def pair(self) -> Pair:
        """Its certificate and its key, from which it can be made again."""
        return self._given or Pair(self.certificate, self._pem(self._key))

    def for_server(
        self,
        addresses: tuple[str, ...],
        name: str = "fnop cluster",
        valid: tuple[float, float] | None = None,
    ) -> Pair:
        """A certificate for a server at these names and IP addresses.

        It is valid as long as the authority, or between two times in Unix seconds.
        """
        x509 = self._x509
        names = [self._general_name(each) for each in addresses]
        return self._issue_pair(
            self._x509_name(name, ()),
            x509.oid.ExtendedKeyUsageOID.SERVER_AUTH,
            x509.SubjectAlternativeName(names),
            valid,
        )

    def for_client(self, user: str, groups: tuple[str, ...]) -> Pair:
        """A certificate for a user; its organizations are the user's groups."""
        usage = self._x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH
        return self._issue_pair(self._x509_name(user, groups), usage, None)

    def _issue_pair(
        self,
        name: Any,
        usage: Any,
        names: Any,
        valid: tuple[float, float] | None = None,
    ) -> Pair:
        x509, key = self._x509, self._ec.generate_private_key(self._ec.SECP256R1())
        builder = (
            self._builder(name, key, valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(self._usage(digital_signature=True), True)
            .add_extension(x509.ExtendedKeyUsage([usage]), False)
        )
        if names is not None:
            builder = builder.add_extension(names, False)
        return Pair(self._sign(builder), self._pem(key))

    def _pem(self, key: Any) -> bytes:
        serialization = self._serialization
        found: bytes = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return found

    def _builder(
        self, name: Any, key: Any, valid: tuple[float, float] | None = None
    ) -> Any:
        x509, public = self._x509, key.public_key()
        begins, ends = valid or (self.begins, self.ends)
        of_authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(
            self._key.public_key()
        )
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.fromtimestamp(begins, UTC))
            .not_valid_after(datetime.fromtimestamp(ends, UTC))
            # Strict verifiers (Python 3.13) require the identifiers.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
            .add_extension(of_authority, False)
        )

    def _sign(self, builder: Any) -> bytes:
        certificate = builder.sign(self._key, self._hashes.SHA256())
        found: bytes = certificate.public_bytes(self._serialization.Encoding.PEM)
        return found

    def _x509_name(self, name: str, organizations: tuple[str, ...]) -> Any:
        oid, attribute = self._x509.oid.NameOID, self._x509.NameAttribute
        return self._x509.Name(
            [
                *(attribute(oid.ORGANIZATION_NAME, each) for each in organizations),
                attribute(oid.COMMON_NAME, name),
            ]
        )

    def _general_name(self, address: str) -> Any:
        try:
            return self._x509.IPAddress(ipaddress.ip_address(address))
        except ValueError:
            return self._x509.DNSName(address)

    def _usage(self, **given: bool) -> Any:
        names = (
            "digital_signature content_commitment key_encipherment data_encipherment "
            "key_agreement key_cert_sign crl_sign encipher_only decipher_only"
        )
        return self._x509.KeyUsage(**{n: given.get(n, False) for n in names.split()})


def server_context(authority: Authority, pair: Pair) -> ssl.SSLContext:
    """The TLS settings of the server: 1.2 and up, optional client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority.certificate.decode())
    with file_with(pair.certificate + pair.key) as path:
        context.load_cert_chain(path)
    return context
