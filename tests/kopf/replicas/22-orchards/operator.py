"""Orchards: rows are daemons, trees an index; sub-handlers plant in two levels."""

import asyncio
import logging
import threading
import time

import kopf

GROUP, VERSION = "replicas.fnop.dev", "v1"
ORCHARD = (GROUP, VERSION, "orchards")
log = logging.getLogger("orchards")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_):
    settings.posting.level = logging.WARNING
    settings.background.cancellation_polling = 1
    settings.execution.default_backoff = 0.5
    memo.lock = threading.Lock()  # all objects have it
    memo.harvest = {}


# ------------------------------------------------------------------------ indices


@kopf.index(GROUP, VERSION, "trees")
def trees_of(namespace, spec, name, **_):
    """Many trees for a key; a tree may be in many orchards."""
    return {(namespace, each): name for each in spec.get("orchards", [])}


@kopf.index("trees", field="spec.sort", value=kopf.PRESENT)
async def sorts(spec, **_):
    """Values without keys."""
    return spec["sort"]


@kopf.index("configmaps", labels={"weather": kopf.PRESENT})
@kopf.index(
    "configmaps",
    id="gauges",
    labels={"weather": kopf.PRESENT},
    errors=kopf.ErrorsMode.PERMANENT,
)
@kopf.index(
    "configmaps", id="buckets", labels={"weather": kopf.PRESENT}, retries=2, backoff=1
)
def weather(labels, body, retry, **_):
    if "rain" not in body.get("data", {}):
        raise ValueError("no rain")
    return {labels["weather"]: int(body["data"]["rain"])}


# ------------------------------------------------------------------- sub-handlers


@kopf.on.create(*ORCHARD)
@kopf.on.update(*ORCHARD, field="spec.rows")
async def plant(spec, name, patch, logger, memo, reason, status, **_):
    """The rows are sub-handlers, and the trees of a row are theirs."""
    memo.planted = []
    for row in spec.get("rows", []):
        kopf.register(plant_row(row), id=row["name"], backoff=0.5, param=row)

    # What is there now, in a second set, which runs at once.
    async def fence(logger, retry, **_):
        if retry < 1:
            raise kopf.TemporaryError("no wood", delay=0.7)
        logger.info("fenced")
        return {"posts": len(spec.get("rows", [])) * 4}

    def gate(logger, param, **_):
        logger.info(f"gate, {param}")

    await kopf.execute(fns={"fence": fence, "gate": gate})
    logger.info(f"{reason}: {name} has a fence")
    patch.status["fence"] = "yes"
    return {"rows": len(spec.get("rows", []))}


def plant_row(row):
    async def dig(param, logger, retry, memo, **_):
        assert param == row

        @kopf.subhandler(id="soil", retries=3)
        def soil(retry, logger, **_):
            if param.get("stony") and retry < 2:
                raise kopf.TemporaryError(
                    f"stones in {param['name']}", delay=param.get("pause", 0.4)
                )
            logger.info(f"soil of {param['name']} after {retry} attempts")
            return "loose"

        for tree in param["trees"]:

            @kopf.subhandler(id=tree, errors=kopf.ErrorsMode.PERMANENT)
            async def tree_planted(logger, patch, tree=tree, **_):
                if tree == "weed":
                    raise ValueError("no tree")
                logger.info(f"{tree} in {param['name']}")
                memo.planted.append(tree)
                patch.status.setdefault("planted", {})[f"{param['name']}-{tree}"] = True
                return {"tree": tree}

        logger.info(f"dig {param['name']}")

    return dig


@kopf.on.update(*ORCHARD, field="spec.sign")
def repaint(old, new, logger, **_):
    @kopf.subhandler(field="spec.sign", old=kopf.PRESENT, new=kopf.PRESENT)
    def over(old, new, logger, **_):
        logger.info(f"painted {new} over {old}")

    @kopf.subhandler(field="spec.sign", value="red", labels={"season": kopf.ABSENT})
    def red(new, logger, **_):
        logger.info(f"red: {new}")

    @kopf.subhandler(when=lambda new, **_: new is None)
    async def off(logger, **_):
        logger.info("the sign is off")


# ------------------------------------------------------------------------ daemons


def row_daemon(index):
    """As many daemons run as the orchard has rows."""

    def has_row(spec, **_):
        return len(spec.get("rows", [])) > index

    if index % 2:

        @kopf.daemon(*ORCHARD, id=f"row-{index}", when=has_row, cancellation_timeout=2)
        async def watch(stopped, spec, name, memo, logger, **_):
            rows = [each["name"] for each in spec["rows"]]
            logger.info(f"'row-{index}' of {rows} begins")
            try:
                while not stopped:
                    with memo.lock:
                        memo.harvest[name] = memo.harvest.get(name, 0) + 1
                    await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                logger.info(f"'row-{index}' is cancelled")
                raise
            logger.info(f"'row-{index}' ends")

    else:

        @kopf.daemon(*ORCHARD, id=f"row-{index}", when=has_row, initial_delay=0.2)
        def watch_in_thread(stopped, spec, name, memo, logger, patch, retry, **_):
            if retry == 0 and spec.get("late"):
                raise kopf.TemporaryError(f"'row-{index}' is late", delay=0.5)
            logger.info(f"'row-{index}' begins at attempt {retry + 1}")
            patch.status.setdefault("watched", {})[f"row{index}"] = retry
            while not stopped.wait(0.3):
                with memo.lock:
                    memo.harvest[name] = memo.harvest.get(name, 0) + 1
            logger.info(f"'row-{index}' ends")


for number in range(3):
    row_daemon(number)


# ------------------------------------------------------------------------- timers


@kopf.timer(*ORCHARD, interval=0.6, sharp=True, initial_delay=0.3)
def rain(namespace, weather: kopf.Index, gauges, buckets, status, patch, **_):
    """The indices are read, and the status written if they have changed."""
    fallen = [sorted(each.get(namespace, [])) for each in (weather, gauges, buckets)]
    if fallen != status.get("rain", []):
        patch.status["rain"] = fallen
    time.sleep(0.05)


@kopf.timer(*ORCHARD, idle=1.5, interval=60, id="rest", annotations={"quiet": "yes"})
async def rest(name, trees_of, namespace, sorts, logger, patch, memo, retry, **_):
    if retry < 1:
        raise kopf.TemporaryError("'rest' is disturbed", delay=0.3)
    found = sorted(trees_of.get((namespace, name), []))
    patch.status["trees"] = found
    logger.info(f"'rest' with {found} of {sorted(sorts.get(None, []))}")
    return {"count": len(found), "harvest": memo.harvest.get(name, 0) > 0}


@kopf.timer(*ORCHARD, interval=0.5, when=lambda spec, **_: "clip" in spec, retries=2)
async def clip(spec, patch, status, retry, logger, **_):
    if spec["clip"] == "wrong":
        raise RuntimeError("'clip' has no scissors")
    if status.get("clipped") != spec["clip"]:
        patch.status["clipped"] = spec["clip"]
        logger.info(f"'clip' {spec['clip']}")


# -------------------------------------------------------------------------- trees


@kopf.on.create("trees")
@kopf.on.resume("trees")
async def tree_known(name, trees_of, sorts, logger, memo, reason, **_):
    with memo.lock:
        memo.known = True
    among = sum(name in list(each) for each in trees_of.values())
    logger.info(f"{reason}: in {among} orchards, of {len(sorts.get(None, []))} sorts")


@kopf.on.delete(*ORCHARD)
async def fell(name, memo, logger, retry, patch, **_):
    @kopf.subhandler(id="saw")
    async def saw(retry, **_):
        if retry == 0:
            raise kopf.TemporaryError("the saw is blunt", delay=0.5)
        logger.info("sawn")

    @kopf.subhandler(id="stumps")
    def stumps(**_):
        @kopf.subhandler(id="dig")
        def dig(retry, logger, **_):
            logger.info("stumps are out")

    memo.harvest.pop(name, None)
