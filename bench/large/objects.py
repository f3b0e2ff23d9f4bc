"""The objects of the collection: custom objects like those of real users.

All values are derived from the object's number by a hash, so that one object repeats
little of another one.
"""

import hashlib
from typing import Any

import orjson

from bench.client import Json
from bench.workload import GROUP

_WORDS = (
    "about access account after alarm answer backup before billing bucket cache "
    "certificate change client cluster contract copy customer daily data database "
    "delay deploy disk document domain early event failure field gateway hourly image "
    "invoice journal key late ledger limit log mail member message month network node "
    "number office order owner packet page payment period policy price queue quota "
    "record region release report request restore review route rule schedule secret "
    "server service shard signal site source stage storage stream summary table team "
    "tenant ticket token traffic update user value version volume warehouse week yard"
)
WORDS = tuple(_WORDS.split())
REGIONS = ("ap-south-1", "eu-central-1", "eu-west-3", "us-east-1", "us-west-2")
LEVELS = ("bronze", "gold", "silver")


def name_of(number: int) -> str:
    """The name of an object; names sort as their numbers do.

    >>> name_of(42)
    'object-000042'
    """
    return f"object-{number:06}"


def item(number: int, length: int) -> Json:
    """An object whose own JSON has this number of bytes, if its fields fit."""
    draw = Draw(number)
    body: Json = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "BenchObject",
        "metadata": {"name": name_of(number), "labels": labels(draw)},
        "spec": {"number": number, **fields(draw), "notes": ""},
    }
    rest = length - len(orjson.dumps(body))
    body["spec"]["notes"] = draw.text(max(0, rest))
    return body


def labels(draw: "Draw") -> dict[str, str]:
    return {
        "app.kubernetes.io/name": draw.word(),
        "app.kubernetes.io/instance": f"{draw.word()}-{draw.digits(8)}",
        "team": draw.word(),
        "tier": LEVELS[draw.below(len(LEVELS))],
    }


def fields(draw: "Draw") -> dict[str, Any]:
    return {
        "owner": f"{draw.word()}.{draw.word()}@example.com",
        "region": REGIONS[draw.below(len(REGIONS))],
        "image": f"registry.example.com/{draw.word()}@sha256:{draw.digits(64)}",
        "replicas": 1 + draw.below(9),
        "threshold": draw.below(10_000) / 100,
        "suspended": draw.below(4) == 0,
        "schedule": f"{draw.below(60)} {draw.below(24)} * * {draw.below(7)}",
        "resources": {
            "cpu": f"{50 * (1 + draw.below(40))}m",
            "memory": f"{64 * (1 + draw.below(32))}Mi",
        },
        "endpoints": [
            {
                "name": draw.word(),
                "host": f"{draw.word()}-{draw.digits(6)}.example.com",
                "port": 1024 + draw.below(60_000),
                "weight": draw.below(100),
            }
            for _ in range(3)
        ],
        "settings": [
            {"key": f"{draw.word()}.{draw.word()}", "value": draw.digits(12)}
            for _ in range(3)
        ],
    }


class Draw:
    """Values that a number determines.

    >>> Draw(1).digits(4) == Draw(1).digits(4) != Draw(2).digits(4)
    True
    """

    def __init__(self, number: int) -> None:
        self._number, self._block, self._left = number, 0, b""

    def _bytes(self, count: int) -> bytes:
        while len(self._left) < count:
            block = hashlib.sha256(b"%d/%d" % (self._number, self._block))
            self._left += block.digest()
            self._block += 1
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def below(self, limit: int) -> int:
        return int.from_bytes(self._bytes(4)) % limit

    def word(self) -> str:
        return WORDS[self.below(len(WORDS))]

    def digits(self, count: int) -> str:
        """A text of hexadecimal digits, such as those of a checksum."""
        return self._bytes((count + 1) // 2).hex()[:count]

    def text(self, length: int) -> str:
        """Words; the last one may be cut off.

        >>> len(Draw(1).text(100))
        100
        """
        found = ""
        while len(found) < length:
            found += f"{self.word()} "
        return found[:length]
