"""The hand-written loop, which also keeps all objects.

    python -m bench.large.floor NAMESPACE

It lists by pages and keeps each object as its JSON by its name, like a program that
looks up data in other objects.
"""

import asyncio
import sys

import orjson

from bench import floor
from bench.client import Json, loop_factory


class Keeping(floor.Floor):
    kept: dict[str, bytes]

    async def list(self) -> str:
        self.kept = {}
        return await super().list()

    def offer(self, body: Json) -> None:
        # orjson's buffer grows by doubling, and the rest of it is left in pieces that
        # are too small for the next one: copies take a third of the memory.
        self.kept[body["metadata"]["name"]] = bytes(memoryview(orjson.dumps(body)))
        super().offer(body)

    def forget(self, name: str) -> None:
        self.kept.pop(name, None)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(floor.run(sys.argv[1], Keeping))
