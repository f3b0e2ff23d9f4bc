"""etcd's limits on the size of requests and of the storage, and its error messages."""

from __future__ import annotations

from collections.abc import Iterable

from fnop.interpreters.cluster.storage.store import Cluster, StoredEvent
from fnop.interpreters.cluster.values.status import failure

__all__ = ["QUOTA_BYTES", "check_stored"]

# etcd: --max-request-bytes, and the maximum that its client sends.
REQUEST_BYTES, MESSAGE_BYTES = 1536 * 1024, 2 * 1024 * 1024
# Differences from the shown object: its resourceVersion, for example, is not sent, and
# the request gets an envelope (measured on 1.36).
_NOT_SENT, _ENVELOPE = 41, 15
# etcd: --quota-backend-bytes, which is 2 GiB there. Here it is JSON text, which takes
# about five times as much memory.
QUOTA_BYTES = 256 * 1024 * 1024


def check_stored(
    before: Cluster, after: Cluster, events: Iterable[StoredEvent]
) -> None:
    """Refuse a write that etcd would not take; raises `Refusal`.

    The state is a value: a refused write has not happened.
    """
    largest = max((event.size for event in events), default=0)
    sent = largest - _NOT_SENT
    if sent > MESSAGE_BYTES:
        raise failure(
            500,
            None,
            "rpc error: code = ResourceExhausted desc = trying to send message larger "
            f"than max ({sent} vs. {MESSAGE_BYTES})",
        )
    if sent + _ENVELOPE > REQUEST_BYTES:
        raise failure(500, None, "etcdserver: request is too large")
    if before.size < after.size > QUOTA_BYTES:
        raise failure(500, None, "etcdserver: mvcc: database space exceeded")
