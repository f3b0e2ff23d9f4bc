"""A test whether the API server will trust the certificate of webhooks."""

from __future__ import annotations

import ssl

from fnop.adapters.webhooks.certificates import Served, context_with
from fnop.core.values.errors import joined

__all__ = ["refusal_of"]

# OpenSSL: X509_V_ERR_CERT_HAS_EXPIRED; X509_V_ERR_HOSTNAME_MISMATCH and the same for an
# IP address; and the errors of a chain that ends at no known authority.
_EXPIRED, _OTHER_NAME, _UNKNOWN_AUTHORITY = 10, (62, 64), (2, 18, 19, 20, 21)
# A handshake takes fewer flights of messages than this.
_FLIGHTS = 10


def refusal_of(served: Served, bundle: bytes, host: str) -> str:
    """The reason why a client refuses a certificate, and the remedy; else "".

    The client knows the authorities of the `bundle`, and calls the server by `host`.
    They make a handshake in memory, by the rules of Go. Only the subject alternative
    names count, and an authority may be an intermediate one.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=bundle.decode("ascii", "replace"))
        answering = context_with(served, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
    except (ssl.SSLError, ValueError):
        return ""  # the code that reads these has reported them
    problem = _shake_hands(context, answering, host)
    if problem is None:
        return ""
    if problem.verify_code in _OTHER_NAME:
        names = joined(sorted(served.names)) if served.names else "no name"
        return f"it is that of {names}; get one for {host}"
    if problem.verify_code == _EXPIRED:
        return "it, or its authority, has expired; renew it"
    why = problem.verify_message
    if problem.verify_code in _UNKNOWN_AUTHORITY:
        return (
            f"its authority is another one ({why}); give that as --webhook-ca or "
            "cafile="
        )
    return f"it is not one of a server's that is valid now ({why}); get another one"


def _shake_hands(
    asking: ssl.SSLContext, answering: ssl.SSLContext, host: str
) -> ssl.SSLCertVerificationError | None:
    """The client's complaint about the server, if it has one."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(back, there, server_hostname=host)
    server = answering.wrap_bio(there, back, server_side=True)
    for _ in range(_FLIGHTS):
        for end in (client, server):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as problem:
                return problem
            except ssl.SSLError:
                return None
    return None
