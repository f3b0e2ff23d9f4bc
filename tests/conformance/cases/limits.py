"""Objects that are too large to be stored: etcd refuses them in its own words."""

from __future__ import annotations

from typing import Any

from fnop.interpreters.runtime.protocol import JSON_PATCH, MERGE_PATCH
from tests.conformance.cases.basics import FOOS
from tests.conformance.suite import ABSENT, Case, Step

__all__ = ["CASES"]

BOTH = ("1.20", "1.36")
TOO_LARGE = {"message": "etcdserver: request is too large", "reason": ABSENT}


def foo(size: int) -> dict[str, Any]:
    meta = {"name": "large"}
    text = "x" * size
    return {"apiVersion": "conf.dev/v1", "kind": "Foo", "metadata": meta, "text": text}


def copies(text: str, times: int, code: int = 200, **more: Any) -> Step:
    """A patch that copies a text, and leaves the object as it is."""
    copy = {"op": "copy", "from": "/x", "path": "/y"}
    operations = [
        {"op": "add", "path": "/x", "value": text},
        *[copy] * times,
        {"op": "remove", "path": "/y"},
        {"op": "remove", "path": "/x"},
    ]
    return Step("PATCH", f"{FOOS}/large", operations, JSON_PATCH, code=code, **more)


def doublings(times: int, **more: Any) -> Step:
    """A patch that copies an object into itself."""
    operations = [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/x{number}"}
        for number in range(times)
    ]
    return Step("PATCH", f"{FOOS}/large", operations, JSON_PATCH, **more)


MIB = 1024 * 1024
REJECTED = {
    "message": "the server rejected our request due to an error in our request",
    "reason": "Invalid",
}
DIGITS = "9" * 5_000
ZEROS = "0" * 5_000 + "1"


def refused(why: str, text: str) -> dict[str, Any]:
    message = f'strconv.ParseInt: parsing "{text}": {why}'
    return {"message": message, "reason": "BadRequest"}


LARGE, NONE = "value out of range", "invalid syntax"

CASES = (
    Case(
        "options with numbers that no computer has",
        (
            Step(
                "GET",
                FOOS,
                query={"limit": DIGITS},
                code=400,
                has=refused(LARGE, DIGITS),
            ),
            Step(
                "GET",
                FOOS,
                query={"timeoutSeconds": DIGITS},
                code=400,
                has=refused(LARGE, DIGITS),
            ),
            Step(
                "GET", FOOS, query={"limit": "1_0"}, code=400, has=refused(NONE, "1_0")
            ),
            Step("GET", FOOS, query={"limit": ZEROS}, has={"items": []}),
            Step("GET", FOOS, query={"timeoutSeconds": ZEROS}, has={"items": []}),
            Step(
                "DELETE",
                f"{FOOS}/none",
                query={"gracePeriodSeconds": DIGITS},
                code=400,
                has=refused(LARGE, DIGITS),
            ),
            Step(
                "DELETE",
                f"{FOOS}/none",
                query={"gracePeriodSeconds": "1_0"},
                code=400,
                has=refused(NONE, "1_0"),
            ),
            Step(
                "DELETE", f"{FOOS}/none", query={"gracePeriodSeconds": ZEROS}, code=404
            ),
        ),
        BOTH,
    ),
    Case(
        "a JSON patch that copies more than 3 MiB",
        (
            Step("POST", FOOS, foo(10), code=201),
            copies("x" * (MIB - 2), 3),
            copies("x" * (MIB - 1), 3, 422, has=REJECTED),
            copies("<" * 100_000, 5),
            copies("<" * 100_000, 6, 422, has=REJECTED),
            doublings(4),
            doublings(16, code=422, has=REJECTED),
            doublings(40, code=422, has=REJECTED),
            doublings(10_001, code=413, has={"reason": "RequestEntityTooLarge"}),
        ),
        BOTH,
    ),
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
