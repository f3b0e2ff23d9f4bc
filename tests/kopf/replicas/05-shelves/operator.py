"""A shop of books: indices, filters with a memory, and a memo that is no `kopf.Memo`.

It is a program of its own, and awaits `kopf.operator`.
"""

import asyncio
import collections
import dataclasses
import os
import signal

import kopf

BOOKS = "books.replicas.fnop.dev"


@dataclasses.dataclass
class Till:
    """What all handlers share: Kopf copies it for each object, but not its lists."""

    sold: list = dataclasses.field(default_factory=list)
    asked: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    own: str = "nothing"


@kopf.index("shelves.replicas.fnop.dev", id="shelves_by_colour")
def by_colour(spec, name, **_):
    return {spec["colour"]: (name, spec.get("width", 1))}


@kopf.index("shelves.replicas.fnop.dev", field="spec.width", value=kopf.PRESENT)
async def widths(name, spec, **_):
    return spec["width"]


@kopf.index(BOOKS, labels={"genre": "crime"})
def crimes(namespace, name, **_):
    return {(namespace, name): None}


def placed(colour, shelves: kopf.Index, widths: kopf.Index):
    places = sorted(shelves.get(colour, []))
    total = sum(width for store in widths.values() for width in store)
    return {"shelves": [name for name, _ in places], "width": total}


@kopf.on.resume(BOOKS)
@kopf.on.create(BOOKS)
def place(spec, patch, shelves_by_colour, memo, name, retry, reason, widths, **_):
    if spec["colour"] not in shelves_by_colour:
        raise kopf.TemporaryError(f"no shelf for {spec['colour']}", delay=3)
    memo.own = f"{name}, {reason}"
    patch.status["place"] = placed(spec["colour"], shelves_by_colour, widths)


seen = set()


def is_news(name, spec, memo, **_):
    """Impure: false for a price that a handler has noted."""
    memo.asked["news"] += 1
    return (name, spec.get("price")) not in seen


def is_asked(memo, **_):
    """Impure: it counts its calls."""
    memo.asked["shelf"] += 1
    return memo.asked["shelf"] > 0


def is_dear(value, **_):
    return (value or 0) > 10


@kopf.on.update(BOOKS, field="spec.price", old=kopf.PRESENT, new=is_dear, when=is_news)
def dear(old, new, name, logger, memo, **_):
    seen.add((name, new))
    logger.info(f"{old} -> {new} is dear; {memo.own}")
    return f"dear at {new}"


@kopf.on.field(BOOKS, field="spec.state", old="new", new="sold")
async def sold(name, memo, logger, **_):
    memo.sold.append(name)
    logger.info(f"sold: {sorted(memo.sold)}")


@kopf.on.field(
    BOOKS,
    field="metadata.labels.genre",
    when=kopf.all_([kopf.not_(lambda name, **_: name.startswith("old")), is_asked]),
)
def reshelved(old, new, logger, crimes, **_):
    logger.info(f"genre {old} -> {new}; crimes: {sorted(k[1] for k in crimes)}")


@kopf.on.update(
    BOOKS,
    labels={"genre": lambda value, **_: (value or "").startswith("c")},
    annotations={"signed": "yes", "lent": kopf.ABSENT},
)
def signed(meta: kopf.Meta, diff, logger, **_):
    changes = sorted({".".join(path) for _, path, _, _ in diff})
    logger.info(f"signed {meta.labels['genre']}: {changes}")


@kopf.on.event("shelves.replicas.fnop.dev")
def on_shelf(event, name, shelves_by_colour, logger, **_):
    if event["type"] == "DELETED":
        logger.info(f"{name} is gone; left: {sorted(shelves_by_colour)}")


@kopf.on.delete(BOOKS, when=lambda memo, **_: bool(memo.sold))
def pulped(memo, logger, **_):
    logger.info(f"sold before: {memo.sold}")


async def main():
    kopf.configure(verbose=True, log_format=kopf.LogFormat.JSON)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    await kopf.operator(
        namespaces=[os.environ["REPLICA_NAMESPACE"]],
        settings=settings,
        memo=Till(),
        stop_flag=stop,
    )


if __name__ == "__main__":
    asyncio.run(main())
