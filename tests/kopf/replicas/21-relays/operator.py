"""Relays: a class registers its methods and closures, by the rules of a file."""

import asyncio
import dataclasses
import functools
import logging
import pathlib

import kopf
import yaml

KIND = ("replicas.fnop.dev", "v1", "relays")
WORDS = {"absent": kopf.ABSENT, "present": kopf.PRESENT}
log = logging.getLogger("relays")


@dataclasses.dataclass
class Rule:
    name: str
    field: str
    unit: str
    retries: int
    backoff: float
    errors: str = "TEMPORARY"
    broken: bool = False
    flaky: int = 0


def audited(fn):
    """A decorator of the operator's own, as there are many."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        kwargs["logger"].info(f"audit: attempt {kwargs['retry'] + 1}")
        return fn(*args, **kwargs)

    return wrapper


class Audible:
    """A handler that is an object: it has an id of its own."""

    def __init__(self, word):
        self.word = word

    def __call__(self, name, logger, param, **_):
        logger.info(f"{self.word} {name}, {param}")
        return {"word": self.word}


class Station:
    def __init__(self, path):
        config = yaml.safe_load(path.read_text())
        self.rules = [Rule(**{**config["defaults"], **x}) for x in config["rules"]]
        self.actions = config["actions"]
        self.lost = []

    def register(self):
        kopf.on.startup()(self.configure)
        kopf.on.cleanup(id="closing")(self.close)
        for rule in self.rules:
            self.register_rule(rule)
        for action in self.actions:
            self.register_action(**action)
        kopf.on.create(*KIND, id="hail", param="over")(Audible("hail"))
        kopf.on.update(*KIND, id="ack", param=7, field="spec.signal")(Audible("ack"))
        bound = functools.partial(self.tune, 3)
        kopf.on.field(*KIND, field="spec.signal")(bound)
        for kind in ("ADDED", "MODIFIED", "DELETED"):
            self.register_witness(kind)

    def register_rule(self, rule):
        @kopf.on.field(
            *KIND,
            field=rule.field,
            id=rule.name,
            param=rule,
            errors=kopf.ErrorsMode[rule.errors],
            backoff=rule.backoff,
            retries=rule.retries,
        )
        @audited
        def apply(old, new, diff, param, retry, logger, patch, **_):
            if param.broken and new == "broken":
                raise ValueError(f"{param.name} knows no mode {new}")
            if retry < param.flaky:
                raise RuntimeError(f"{param.name} flickers")
            kinds = [str(each.operation) for each in diff]
            logger.info(f"{param.name}: {old} -> {new}{param.unit} {kinds}")
            patch.status[param.name[:7]] = new
            return new

    def register_action(self, on, step, **filters):
        filters = {
            key: WORDS.get(value, value) if key != "field" else value
            for key, value in filters.items()
        }

        async def act(reason, logger, param, started, runtime, **kwargs):
            extra = sorted({"old", "new", "diff"} & {*kwargs})
            shown = kwargs["diff"] if filters else len(kwargs["diff"]) > 0
            logger.info(f"{reason} {param}: {extra} {shown}")
            if (on, step) == ("update", 2):
                # It takes long, so that the operator may end meanwhile.
                logger.info("begins to power off")
                await asyncio.sleep(1.5)
                logger.info("has powered off")
            if (on, step) == ("delete", 1):
                raise (
                    kopf.TemporaryError("still transmitting", delay=7)
                    if kwargs["retry"] == 0
                    else kopf.PermanentError("gives up")
                )

        getattr(kopf.on, on)(*KIND, id=f"{on}-{step}", param=(on, step), **filters)(act)

    def register_witness(self, kind):
        id = f"saw-{kind.lower()}"

        @kopf.on.event(*KIND, id=id, when=lambda type, **_: type == kind)
        def witness(type, name, event, param, logger, memo, **_):
            assert event["type"] == type
            if kind not in memo.setdefault("seen", set()):
                memo.seen.add(kind)
                logger.info(f"saw {kind} of {event['object']['metadata']['name']}")
            if kind == "DELETED":
                self.lost.append(name)

    def configure(self, settings, memo, activity, param, **_):
        settings.posting.enabled = True
        settings.posting.level = logging.WARNING
        settings.execution.max_workers = 2
        memo.station = "base"
        log.info(f"{activity} with {len(self.rules)} rules")

    async def tune(self, times, *, spec, old, new, diff, logger, memo, **_):
        for op, path, _old, value in diff:
            logger.info(f"tune {times}x: {op} {'/'.join(path)} = {value}")
        logger.info(f"{memo.station}: {type(old).__name__} -> {type(new).__name__}")
        return {"times": times, "keys": sorted(new or ())}

    def close(self, logger, **_):
        logger.info(f"closed; lost {sorted(self.lost)}")


Station(pathlib.Path(__file__).parent / "rules.yaml").register()
