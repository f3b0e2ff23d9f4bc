"""What is too large to be stored: etcd says so, in words of its own."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.protocol import MERGE_PATCH
from tests.conformance.cases.basics import FOOS
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

BOTH = ("1.20", "1.36")
TOO_LARGE = {"message": "etcdserver: request is too large", "reason": ABSENT}


def foo(size: int) -> dict[str, Any]:
    meta = {"name": "large"}
    text = "x" * size
    return {"apiVersion": "conf.dev/v1", "kind": "Foo", "metadata": meta, "text": text}


CASES = (
    Case(
        "an object of more than 1.5 MiB",
        (
            Step("POST", FOOS, foo(1_600_000), code=500, has=TOO_LARGE),
            Step("GET", f"{FOOS}/large", code=404),
            Step("POST", FOOS, foo(5), code=201),
            Step(
                "PATCH",
                f"{FOOS}/large",
                {"more": "x" * 1_600_000},
                MERGE_PATCH,
                code=500,
                has=TOO_LARGE,
            ),
            Step("GET", f"{FOOS}/large", has={"more": ABSENT, "text": "xxxxx"}),
        ),
        BOTH,
    ),
    Case(
        "an object of more than 2 MiB",
        (
            Step(
                "POST",
                FOOS,
                foo(2_200_000),
                code=500,
                has={"reason": ABSENT, "code": 500},
                compare=("code", "status", "reason"),
            ),
            Step("GET", f"{FOOS}/large", code=404),
        ),
        BOTH,
    ),
)
