"""Kopf's settings as fnop's: the one place that knows both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fnop.adapters.kopf.declaring.on import selector_of
from fnop.adapters.kopf.declaring.settings import OperatorSettings, WatchingSettings
from fnop.adapters.kopf.running.states import KopfStates
from fnop.adapters.kubernetes.identity import member_of
from fnop.core.api.resources import Selector, Selectors
from fnop.core.handlers.declare.lifecycles import (
    all_at_once,
    asap,
    one_by_one,
    randomized,
    shuffled,
)
from fnop.core.handlers.declare.settings import Settings
from fnop.core.memory.storage import FormattedStorage
from fnop.core.values.backoff import Backoff
from fnop.effects.structs import replace

__all__ = ["Unsupported", "settings_of"]

# Kopf serves without a limit of requests under way; this one is never reached by it.
_REQUESTS = 100
# A stop ends all else within its grace period, after the handlers.
_GRACE_SECONDS = 5.0
_LIFECYCLES = (all_at_once, asap, one_by_one, randomized, shuffled)


class Unsupported(ValueError):
    """Raised for a setting that fnop cannot have; the text names it and a remedy."""


def settings_of(
    kopf: OperatorSettings,
    namespaces: Sequence[Any],
    lifecycle: Any,
    states: KopfStates,
    now: float,
    identity: str = "",
) -> Settings:
    """The settings of fnop for an operator with these settings of Kopf.

    Raises `Unsupported` for what would change which objects are served and cannot be
    done: a namespace that is a regular expression, as patterns are globs; shards of
    the watches; a lifecycle that is not one of Kopf's; a tunnel for webhooks.
    """
    if kopf.watching.shard_selectors:
        raise Unsupported(
            "fnop does not know settings.watching.shard_selectors; give the kinds "
            "label_selectors or field_selectors instead"
        )
    for each in namespaces:
        if isinstance(each, re.Pattern):
            raise Unsupported(
                f"the namespace pattern {each.pattern!r} is a regular expression; "
                "write a glob, such as 'team-*'"
            )
    if (refusal := getattr(kopf.admission.server, "refusal", None)) is not None:
        raise Unsupported(refusal)
    if lifecycle not in _LIFECYCLES:
        raise Unsupported(
            f"{lifecycle!r} is a lifecycle of its own; use one of kopf.lifecycles"
        )
    persistence, watching = kopf.persistence, kopf.watching
    peering = kopf.peering
    member = member_of(
        peering=peering.name if peering.mandatory else None,
        priority=peering.priority,
        lifetime=peering.lifetime,
        standalone=peering.standalone,
        identity=identity or None,
        wall=now,
    )
    if member is not None and member.name != peering.name:
        member = replace(member, name=peering.name)
    drain = kopf.queueing.exit_timeout or 0.0
    backoff: float | Backoff = kopf.execution.default_backoff
    return Settings(
        namespaces=tuple(map(str, namespaces)) or None,
        kind_selectors=_selectors_in(watching),
        default_backoff=backoff,
        lifecycle=lifecycle,
        request_concurrency=_REQUESTS,
        echo_timeout_seconds=persistence.consistency_timeout or 0.1,
        watch_timeout_seconds=int(watching.server_timeout or 290),
        watch_silence_seconds=max(watching.inactivity_timeout or 330.0, 1.0),
        initial_streaming=watching.initial_streaming,
        list_page_limit=watching.chunk_size or 500,
        drain_seconds=drain,
        grace_period_seconds=max(_GRACE_SECONDS, 2 * drain),
        conditions=False,
        guard=False,
        finalizer=persistence.finalizer,
        storage=FormattedStorage(states),
        peering=member,
        admission_server=kopf.admission.server,
        admission_managed=kopf.admission.managed,
    )


def _selectors_in(watching: WatchingSettings) -> tuple[tuple[Selector, Selectors], ...]:
    """The selectors of the watches, with the kinds that they are about."""
    labels, fields = watching.label_selectors, watching.field_selectors
    return (
        *((selector_of(each), Selectors(labels[each])) for each in labels),
        *((selector_of(each), Selectors(fields=fields[each])) for each in fields),
    )
