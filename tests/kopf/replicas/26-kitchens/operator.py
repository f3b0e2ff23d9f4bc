"""Kitchens: orders are cooked in courses, by sub-handlers of many levels.

Cooks fail in all ways, and results have all types.
"""

import asyncio
import contextvars
import datetime
import enum
import functools
import time

import kopf

station: contextvars.ContextVar[str] = contextvars.ContextVar("station", default="none")
locks: dict[str, asyncio.Semaphore] = {}


class Done(enum.StrEnum):
    RARE = "rare"
    WELL = "well"


class OutOf(kopf.PermanentError):
    def __init__(self, what: str, left: int = 0) -> None:
        super().__init__(what)
        self.what, self.left = what, left

    def __str__(self) -> str:
        return f"{self.left} of {self.what}"


class Busy(kopf.TemporaryError):
    def __init__(self, cook: str) -> None:
        super().__init__(f"{cook} is\nbusy", delay=0.4)


class Cook:
    """Handlers which are objects and methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *, logger, retry, patch, **_):
        logger.info(f"{self.name} cooks, {retry}")
        if retry == 0:
            patch.status.setdefault("cooks", {})[self.name] = "late"
            raise Busy(self.name)
        return {"cook": self.name}

    @classmethod
    async def wash(cls, *, logger, status, reason, **_):
        logger.info(f"washes up {len(status.get('cooks', {}))} on {reason}")


def ordered(**kinds):
    """A decorator of the author, in front of those of Kopf."""

    def decorate(fn):
        @functools.wraps(fn)
        async def wrapper(*args, **kwargs):
            token = station.set(fn.__name__)
            try:
                async with locks.setdefault(fn.__name__, asyncio.Semaphore(2)):
                    return await fn(*args, **kinds, **kwargs)
            finally:
                station.reset(token)

        return wrapper

    return decorate


@kopf.on.startup()
async def open_kitchen(settings, memo, **_):
    settings.posting.enabled = False
    settings.execution.default_backoff = 0.5
    settings.persistence.consistency_timeout = 3.0
    settings.queueing.exit_timeout = 1.0
    settings.queueing.error_delays = [0.5]
    memo.tickets = []


sous, chef = Cook("sous"), Cook("chef")
kopf.on.create("orders", id="sous", retries=3)(sous)
kopf.on.create("orders", id="chef", retries=1)(chef)
kopf.on.delete("orders", id="wash", field="spec.dirty", value=True)(Cook.wash)


@kopf.on.create("orders", id="results/all")
def results(spec, **_):
    """Each item of the order has a result of its own."""
    for kind in spec.get("results", []):
        kopf.register(lambda kind=kind, **_: RESULTS[kind], id=kind)
    return ("a", "tuple")


RESULTS = {
    "nothing": None,
    "never": False,
    "zero": 0,
    "text": "",
    "list": [1, [2, None]],
    "tree": {"a": {"b": None, "c": []}, "d.e": {"f/g": 1.5}},
    "enum": Done.RARE,
    "keys": {1: "one", True: "yes"},  # noqa: F601
    "at": datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC),
}


@kopf.on.create("orders", field="spec.courses", value=kopf.PRESENT)
@kopf.on.update("orders", field="spec.courses", new=kopf.PRESENT)
@kopf.on.resume("orders", field="spec.courses")
@ordered(table="T1")
async def courses(spec, name, reason, table, memo, logger, retry, **_):
    """The courses in their order: a course has dishes, and a dish has steps."""
    logger.info(f"{reason} {name} at {table}, {station.get()}, {retry}")
    memo.tickets = [*memo.get("tickets", []), reason]
    for n, course in enumerate(spec["courses"] or []):
        fn = functools.partial(cook_course, course=course, number=n)
        await kopf.execute(fns={f"course-{n}": fn})
    logger.info(f"all courses of {name}: {len(memo.tickets)}")
    return {"courses": len(spec["courses"] or [])}


async def cook_course(course, number, logger, **_):
    logger.info(f"course {number}: {sorted(course)}")

    for dish, steps in sorted(course.items()):

        @kopf.subhandler(id=dish, param=steps, timeout=5)
        def cook_dish(param, dish=dish, **_):
            for step in param:
                kopf.register(functools.partial(take, what=step), id=step, retries=2)
            return dish

    return None if number else {"first": True}


def take(what, logger, retry, memo, **_):
    logger.info(f"{what}, {retry}")
    if what == "flambe" and retry == 0:
        raise Busy("the torch")
    if what == "truffle":
        raise OutOf("truffles", left=0)
    memo[what] = memo.get(what, 0) + 1


@kopf.on.create(
    "orders", field="spec.late", value=kopf.PRESENT, retries=2, timeout=3.0, backoff=2.0
)
def late(spec, retry, logger, started, runtime, **_):
    """Its attempts and its time end at once."""
    logger.info(f"late {retry} {runtime.total_seconds() >= 1.9}")
    kind = spec["late"][min(retry, len(spec["late"]) - 1)]
    if kind == "temporary":
        raise kopf.TemporaryError("not yet", delay=2.0)
    if kind == "none":
        raise kopf.TemporaryError(delay=None)
    if kind == "retries":
        raise kopf.HandlerRetriesError("had enough")
    if kind == "timeout":
        raise kopf.HandlerTimeoutError("it is late")
    if kind == "empty":
        raise RuntimeError
    if kind == "lines":
        raise ValueError("one\ntwo") from KeyError("three")


@kopf.on.field("orders", field="spec.team", errors=kopf.ErrorsMode.PERMANENT)
async def team(new, old, logger, patch, **_):
    """Many cooks at once. One that fails ends the others."""
    if not isinstance(new, dict):
        return
    cooked = []

    async def work(cook, seconds):
        try:
            await asyncio.sleep(abs(seconds))
            if seconds < 0:
                raise OutOf(cook, left=seconds)
            cooked.append(cook)
        except asyncio.CancelledError:
            logger.info(f"{cook} stops")
            raise

    try:
        async with asyncio.timeout(1.5), asyncio.TaskGroup() as group:
            for cook, seconds in new.items():
                group.create_task(work(cook, seconds))
    except* OutOf as problems:
        logger.warning(f"out: {[str(each) for each in problems.exceptions]}")
        raise kopf.PermanentError(f"no {problems.exceptions[0].what}") from problems
    finally:
        patch.status["cooked"] = cooked
    logger.info(f"the team has cooked {cooked}, {type(old).__name__}")


@kopf.on.create("dishes")
@kopf.on.update("dishes", field="spec.slow")
async def simmer(spec, body, name, patch, logger, retry, memo, reason, **_):
    logger.info(f"{reason}: simmers {spec.get('slow')}, {retry}")
    await asyncio.sleep(spec.get("slow") or 0)
    patch.status.setdefault("turns", []).append(spec.get("slow"))
    if spec.get("burns") and retry < 4:
        raise kopf.TemporaryError(f"{name} burns", delay=0.7)
    logger.info(f"simmered; now {body.spec.get('slow')}; {dict(patch.status)}")


@kopf.on.create("dishes")
def plate(patch, spec, meta, logger, **_):
    patch["spec"] = {"plate": {"size": "big"}}
    patch.spec["plate"]["colour"] = spec.get("colour")
    patch.metadata.setdefault("labels", {}).update(plated="yes", raw=None)
    patch.setdefault("extra", {})["served"] = None
    logger.info(f"plated: {patch}")


@kopf.on.update("dishes")
def changed(diff, logger, **_):
    for op, path, old, new in sorted(diff, key=lambda each: each.field):
        logger.info(f"{op} {'/'.join(path)} {old} {new}")


@kopf.on.resume("dishes", deleted=True, field="spec.resume")
def back(spec, logger, meta, **_):
    """Sub-handlers of a resume, which also deleted dishes have."""
    for each in spec["resume"] or ():
        kopf.register(functools.partial(warm, each=each), id=each)
    logger.info(f"is back, {bool(meta.get('deletionTimestamp'))}")


async def warm(each, logger, reason, retry, **_):
    logger.info(f"{each} is warmed on {reason}")
    if retry == 0:
        raise kopf.TemporaryError(f"{each} is cold", delay=0.2)


@kopf.on.delete("dishes", when=lambda spec, **_: spec.get("leftovers") is not None)
def throw(spec, logger, **_):
    for each in spec["leftovers"]:

        @kopf.subhandler(id=each, errors=kopf.ErrorsMode.IGNORED)
        def bin_it(retry, each=each, **_):
            logger.info(f"throws {each} away, {retry}")
            if each == "bone":
                raise LookupError("the dog has it")
            if each == "soup" and not retry:
                raise kopf.TemporaryError("too hot", delay=0.3)


@kopf.on.delete("dishes", optional=True)
def sync_wait(logger, spec, **_):
    time.sleep(spec.get("wait", 0))
    logger.info("waited")
