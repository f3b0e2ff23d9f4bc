"""Logs the calls about the kinds that `PROBES` names: the object, and its version.

`CALLS=events` leaves out the handlers of changes, which keep a state on the object.
`CALLS=kinds` logs what becomes of the kinds themselves, and no calls about objects.
"""

import logging
import os
from typing import Any

import fnop

NAMES = os.environ.get("PROBES", "probes").split(",")
CHANGES = os.environ.get("CALLS") != "events"
KINDS = os.environ.get("CALLS") == "kinds"


def told(what: str, body: fnop.Body, logger: logging.LoggerAdapter[Any]) -> None:
    version = body["apiVersion"].rpartition("/")[2]
    logger.info("call %s %s %s", what, body["metadata"]["name"], version)


def declare(number: int, probes: str) -> None:
    @fnop.on.event(probes, id=f"event-{number}")
    def event(type: str | None, body: Any, logger: Any, **_: Any) -> None:
        told(f"{probes} {type}", body, logger)

    if not CHANGES:
        return

    @fnop.on.create(probes)
    def create(body: Any, logger: Any, **_: Any) -> None:
        told("create", body, logger)

    @fnop.on.resume(probes)
    def resume(body: Any, logger: Any, **_: Any) -> None:
        told("resume", body, logger)

    @fnop.on.update(probes)
    def update(body: Any, logger: Any, **_: Any) -> None:
        told("update", body, logger)

    @fnop.on.delete(probes)
    def delete(body: Any, logger: Any, **_: Any) -> None:
        told("delete", body, logger)


def declare_kind(change: str) -> None:
    def told(resource: Any, old: Any, new: Any, logger: Any, **_: Any) -> None:
        versions = (each and "+".join(each.versions) for each in (old, new))
        logger.info("call %s %s", change, " ".join(map(str, versions)))

    getattr(fnop.on.cluster, change)("versions.fnop.dev", "*", id=change)(told)


if KINDS:
    for change in ("kind_added", "kind_removed", "kind_changed"):
        declare_kind(change)
else:
    for number, name in enumerate(NAMES):
        declare(number, name)
