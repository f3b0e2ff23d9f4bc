"""An operator catches up after any fault between itself and the API server.

Each case has an operator, a proxy that fails, and a namespace of its own. Objects are
handled; then a fault begins, and changes are made during it. When it is over, the
operator knows the present objects, and has handled them. It never handles handled
objects again, and creates nothing twice. Meanwhile it sends no more requests than
necessary.

All cases are played at once, in a thread; each test waits for its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from tests.cluster.envtest import ApiServer
from tests.cluster.fault_proxy import (
    Action,
    Answer,
    Cut,
    Drip,
    Dropped,
    Edited,
    Fault,
    FaultProxy,
    HangUp,
    Late,
    Record,
    Reset,
    Say,
    Shredded,
    Silence,
    Upstream,
    error_line,
    proxying,
    refusal,
)
from tests.cluster.fault_world import (
    SILENCE_SECONDS,
    User,
    operated,
    repeated,
    until_met,
)
from tests.patience import soon

# The number of cases at a time.
AT_ONCE = 8

# The least waits after failures in a row. They are repeated here, so that the test
# notices a shortened wait.
WAITS = (0.5, 1.0, 2.0, 3.0, 5.0)
# Tries at once after one that failed: of lists and watches, with new credentials or
# without an expired version; of single objects, which others may be changing.
QUICK_TRIES, QUICK_TRIES_OF_OBJECTS = 1, 4
OBJECT = "/(fnopexamples|configmaps)/"
# Requests for a change: its writes. For a fault: a listing in pages, and a watch. At
# its beginning an operator asks for all kinds, also after a fault.
PER_CHANGE, PER_FAULT, PER_DISCOVERY = 3, 6, 60
# A document of discovery: of all groups, a group, or a version of it.
DOCUMENT = re.compile(r"/apis?(/[^/]+){0,2}$")


@dataclass(frozen=True)
class Case:
    """A fault: armed, and done to the watches under way, for at least `seconds`.

    An `early` one strikes an operator that begins, others one that has handled all.
    `check` looks at all requests since it began.
    """

    name: str
    faults: tuple[Fault, ...] = ()
    strike: Action | None = None
    refused: bool = False
    early: bool = False
    seconds: float = 3.0
    check: Callable[[list[Record]], None] | None = None


# --------------------------------------------------------------------- requests

GARBAGE = b'{"type":"MODIFIED","object":{"kind"\n'
PAGE = b"<html>Please sign in</html>"
GONE = error_line(410, "Expired")
# A watch that ends so is followed by a listing.
EXPIRED = Say((GONE,))
HTML = (("Content-Type", "text/html"),)
EMPTY = Answer(200, b"{}", applies=True)
BUSY_SECONDS = 3


def answer(code: int, reason: str, *, applies: bool = False) -> Answer:
    return Answer(code, refusal(code, reason), applies=applies)


def busy(code: int) -> Answer:
    """Come again in some seconds."""
    headers = (("Content-Type", "application/json"), ("Retry-After", str(BUSY_SECONDS)))
    return Answer(code, refusal(code, "TooManyRequests"), headers)


def to_watch(action: Action, *, times: int | None = None) -> tuple[Fault, ...]:
    return (Fault(action, "GET", "/fnopexamples$", watch=True, times=times),)


def to_list(
    action: Action, *, page: int = 1, times: int | None = None
) -> tuple[Fault, ...]:
    """Of a listing after an expired watch, its first page or one behind it."""
    query = "^limit=.*continue=" if page > 1 else "^limit=((?!continue=).)*$"
    fault = Fault(action, "GET", "/fnopexamples$", query, watch=False, times=times)
    return (fault,)


def to_write(
    action: Action, *, times: int | None = None, method: str = "PATCH"
) -> tuple[Fault, ...]:
    """Of the operator's own objects, or of children."""
    path = "/fnopexamples/" if method == "PATCH" else "/configmaps$"
    return (Fault(action, method, path, times=times),)


def to_read(action: Action, *, times: int | None = None) -> tuple[Fault, ...]:
    return (Fault(action, "GET", "/(fnopexamples|configmaps)/", times=times),)


def to_all(action: Action) -> tuple[Fault, ...]:
    return (Fault(action),)


# ----------------------------------------------------------------------- checks


def struck(records: list[Record]) -> Iterator[tuple[Record, list[Record]]]:
    """The struck requests, and later ones; two objects had the name "replaced"."""
    for number, each in enumerate(records):
        if each.fault is not None and "/replaced" not in each.path:
            yield each, records[number + 1 :]


def looks_first(records: list[Record]) -> None:
    """If the outcome of a write is unknown, the next request is a live read."""
    for each, after in struck(records):
        if each.method == "GET":
            continue
        rest = [other for other in after if not other.is_watch]
        if each.method == "PATCH":
            path = each.path.removesuffix("/status")
            later = [other for other in rest if other.path.startswith(path)]
        else:
            name = json.loads(each.body)["metadata"]["name"]
            later = [
                other
                for other in rest
                if other.path == f"{each.path}/{name}" or name.encode() in other.body
            ]
        assert not later or later[0].method == "GET", [*map(_shown, (each, *later))]


def made_once(records: list[Record]) -> None:
    """The operator does not create again, or try to create, an object that exists."""
    looks_first(records)
    made = [each.body for each in records if each.answered == 201]
    assert len(made) == len(set(made)), made


def heeds_advice(records: list[Record]) -> None:
    """The operator does not repeat a request before the time in the server's advice."""
    for each, after in struck(records):
        later = [
            other.at - each.at
            for other in after
            if (other.method, other.path, other.is_watch)
            == (each.method, each.path, each.is_watch)
        ]
        assert not later or later[0] >= BUSY_SECONDS - 0.05, later


def takes_its_time(records: list[Record]) -> None:
    """After repeated failures of the same request the operator waits longer each time.

    Load makes a wait longer, and never shorter: the operator begins to wait after the
    failure, and the failure comes after the record of its request.
    """
    failed: dict[object, list[Record]] = {}
    for each in records:
        if each.fault is None or "/replaced" in each.path:
            failed.pop(_target(each), None)
            continue
        tries = failed.setdefault(_target(each), [])
        if tries and each.at - tries[-1].at >= WAITS[-1]:
            tries.clear()  # there is no longer wait: earlier tries may be forgotten
        tries.append(each)
        # Its HTTP client repeats a reading request once whose connection has broken.
        is_broken = each.method == "GET" and each.fault in ("Reset()", "HangUp()")
        number = (len(tries) - 1) // 2 if is_broken else len(tries) - 1
        of_object = each.method != "GET" or re.search(OBJECT, each.path)
        quick = QUICK_TRIES_OF_OBJECTS if of_object else QUICK_TRIES
        waits = sum(WAITS[min(n, len(WAITS) - 1)] for n in range(number - quick))
        waited = each.at - tries[0].at
        assert waited >= waits, (waited, waits, [*map(_shown, tries)])


def _target(record: Record) -> object:
    is_next = "continue=" in record.query
    name = b""
    if record.method == "POST":
        name = json.loads(record.body)["metadata"].get("name")
    return record.method, record.path, name, record.is_watch, is_next


def asks_little(records: list[Record]) -> None:
    """The number of requests depends on the events, not on the time they took.

    An operator also lists all kinds when another client defines one.
    """
    silences = (records[-1].at - records[0].at) / SILENCE_SECONDS if records else 0
    strikes = sum(each.fault is not None for each in records)
    # What strikes the watches under way is a fault, too; an early one, a beginning.
    changes, faults = CHANGES * PER_CHANGE, (1 + strikes + silences) * PER_FAULT
    documents = [each for each in records if DOCUMENT.match(each.path)]
    number, shown = len(records) - len(documents), [*map(_shown, records)]
    assert number <= 2 * (changes + faults), (number, strikes, shown)
    most = (2 + strikes) * PER_DISCOVERY
    assert len(documents) <= most, (len(documents), strikes, shown)


# ------------------------------------------------------------------------ cases

WATCHES = (
    Case("the watch is reset", strike=Reset()),
    Case("watches are reset at once", to_watch(Reset()), Reset()),
    Case("watches are closed at once", to_watch(HangUp()), HangUp()),
    Case("watches end at once", to_watch(Say()), Say(), seconds=6),
    Case("the watch breaks off in a line", strike=Say((GARBAGE[:20],), HangUp())),
    Case("the watch ends in a line", strike=Say((GARBAGE[:20],))),
    Case("a line cannot be decoded", strike=Say((GARBAGE,), Silence())),
    Case(
        "events come as garbage",
        to_watch(Edited(lambda line: [b"garbage\n"])),
        HangUp(),
    ),
    Case(
        "the watch falls silent",
        strike=Silence(),
        seconds=1,
    ),
    Case(
        "watches are silent from their beginning",
        to_watch(Silence(), times=2),
        HangUp(),
    ),
    Case(
        "a line comes drop by drop",
        strike=Drip(),
        seconds=1,
    ),
    Case("each byte comes alone", to_watch(Shredded()), HangUp()),
    Case("410 within the watch", strike=EXPIRED),
    Case("410 twice, and more lines", strike=Say((GONE, GONE, GARBAGE))),
    Case(
        "410 behind a line, again and again",
        to_watch(Edited(lines=1, then=EXPIRED)),
        EXPIRED,
    ),
    Case("410 to watches", to_watch(answer(410, "Expired")), HangUp()),
    Case("an ERROR without a code", strike=Say((b'{"type":"ERROR","object":{}}\n',))),
    Case("an ERROR of 500", strike=Say((error_line(500, "InternalError"),))),
    Case(
        "a bookmark without a version",
        strike=Say((b'{"type":"BOOKMARK","object":{"metadata":{}}}\n',)),
    ),
    Case("a bookmark of null", strike=Say((b'{"type":"BOOKMARK","object":null}\n',))),
    Case("an event of null", strike=Say((b'{"type":"ADDED","object":null}\n',))),
    Case("an event of nothing", strike=Say((b'{"type":"ADDED","object":{}}\n',))),
    Case("429 to watches", to_watch(busy(429)), HangUp(), check=heeds_advice),
    Case("503 to watches", to_watch(answer(503, "Busy")), HangUp()),
    Case("403 to watches", to_watch(answer(403, "Forbidden")), HangUp()),
    Case("401 to watches", to_watch(answer(401, "Unauthorized")), HangUp()),
    Case("400 to watches", to_watch(answer(400, "BadRequest")), HangUp()),
    Case("a page to watches", to_watch(Answer(200, PAGE, HTML)), HangUp()),
)
LISTINGS = (
    Case("500 to listings", to_list(answer(500, "InternalError")), EXPIRED),
    Case("429 to listings", to_list(busy(429)), EXPIRED, check=heeds_advice),
    Case("429 to second pages", to_list(busy(429), page=2), EXPIRED),
    Case("listings are reset", to_list(Reset()), EXPIRED),
    Case("second pages are reset", to_list(Cut(then=Reset()), page=2), EXPIRED),
    Case("listings are cut off", to_list(Cut()), EXPIRED),
    Case(
        "listings come to no end",
        to_list(Cut(then=Silence()), times=1),
        EXPIRED,
    ),
    Case("tokens have expired", to_list(answer(410, "Expired"), page=2), EXPIRED),
    Case("a page to listings", to_list(Answer(200, PAGE, HTML)), EXPIRED),
    Case("an empty answer to listings", to_list(EMPTY), EXPIRED),
    Case(
        "a Status to second pages",
        to_list(Answer(200, b'{"kind":"Status","metadata":{}}'), page=2),
        EXPIRED,
    ),
)
WRITES = (
    Case("writes are done, and reset", to_write(Dropped(Reset())), check=looks_first),
    Case("writes are reset", to_write(Reset()), check=looks_first),
    Case("writes are done, and 500", to_write(answer(500, "Gone", applies=True))),
    Case("writes get 504", to_write(answer(504, "Timeout")), check=looks_first),
    Case("writes get 429", to_write(busy(429)), check=heeds_advice),
    Case("writes get 409", to_write(answer(409, "Conflict"), times=8)),
    Case("answers to writes are cut off", to_write(Cut()), check=looks_first),
    Case("answers to writes are empty", to_write(EMPTY), check=looks_first),
    Case("answers to reads are empty", (*to_write(Dropped(Reset())), *to_read(EMPTY))),
    Case(
        "writes are done, and silent",
        to_write(Dropped(Silence()), times=3),
        check=looks_first,
    ),
    Case("answers to writes come behind the watch", to_write(Late(1.0))),
    Case(
        "children are made, and reset",
        to_write(Dropped(Reset()), method="POST"),
        check=made_once,
    ),
    Case(
        "children are made, and 500",
        to_write(answer(500, "Gone", applies=True), method="POST"),
        check=made_once,
    ),
    Case("answers to children are empty", to_write(EMPTY, method="POST")),
    Case("children get 401", to_write(answer(401, "Unauthorized"), method="POST")),
    Case("children get 503", to_write(answer(503, "Busy"), method="POST")),
    Case("children are reset", to_write(Reset(), method="POST"), check=made_once),
    Case(
        "nobody knows, and nobody says",
        (*to_write(Dropped(Reset())), *to_read(answer(500, "Gone"))),
    ),
)
ALL = (
    Case("nothing at all"),
    Case("connections are refused", refused=True, seconds=6),
    Case("all is reset", to_all(Reset()), Reset(), seconds=6),
    Case("all is 500", to_all(answer(500, "Gone")), HangUp(), seconds=6),
    Case("all is 401", to_all(answer(401, "Unauthorized")), HangUp()),
    Case(
        "all is silent",
        to_all(Silence()),
        Silence(),
    ),
)
ROOTS = "^/apis?$"
OUR_GROUP = "^/apis/fnop.dev/v1$"
FROM_THE_START = (
    Case("at first, all is reset", (Fault(Reset(), times=2),), early=True),
    Case(
        "at first, nobody is there for long",
        (Fault(HangUp()),),
        early=True,
        seconds=8,
    ),
    Case(
        "at first, the server is unable for long",
        (Fault(answer(503, "ServiceUnavailable"), path=ROOTS),),
        early=True,
        seconds=8,
    ),
    Case(
        "at first, the groups are swallowed",
        (Fault(Silence(), path="^/apis$", times=1),),
        early=True,
    ),
    Case(
        "at first, the groups are not told",
        (Fault(busy(429), path="^/apis$", times=1),),
        early=True,
    ),
    Case(
        "at first, our group is not told",
        (Fault(answer(503, "Busy"), path=OUR_GROUP, times=2),),
        early=True,
    ),
    Case(
        "at first, our group is nonsense",
        (Fault(Answer(200, b'{"resources":[{}]}'), path=OUR_GROUP, times=2),),
        early=True,
    ),
    Case(
        "at first, second pages are cut off",
        to_list(Cut(), page=2),
        early=True,
    ),
)
EVERY = (*WATCHES, *LISTINGS, *WRITES, *ALL, *FROM_THE_START)
# A third of them, of each kind, unless all are asked for: `make faults`.
CASES = EVERY if os.environ.get("FNOP_FAULTS") == "all" else EVERY[::3]


# ------------------------------------------------------------------- one case


async def play(case: Case, upstream: Upstream, folder: Path, namespace: str) -> str:
    """Play a case; a line about how it went."""
    user = User(upstream, namespace)
    await user.define()
    for name in ("edited", "ended", "removed", "replaced", "kept"):
        await user.create(name, 1)
    async with proxying(upstream) as proxy:
        if case.early:
            proxy.arm(*case.faults)
        async with operated(proxy.kubeconfig(folder), namespace) as operator:
            if not case.early:
                await until_met(user, operator)
            began = len(proxy.records)
            await _begin(case, proxy)
            await _change(user, case.seconds)
            await soon(
                lambda: proxy.struck >= len(case.faults),
                otherwise=lambda: "the fault has not been met",
            )
            struck = proxy.struck
            proxy.disarm()
            await proxy.listen()
            context = [*map(_shown, proxy.records[-30:])]
            await until_met(user, operator, context)
        assert repeated(user, operator) == []
    records = [*proxy.records][began:]
    takes_its_time(records)
    asks_little(records)
    if case.check is not None:
        case.check(records)
    return f"{case.name}: struck {struck}, {len(records)} requests"


async def _begin(case: Case, proxy: FaultProxy) -> None:
    if not case.early:
        proxy.arm(*case.faults)
    if case.refused:
        await proxy.refuse()
    if (strike := case.strike) is not None:
        # A watch that was silent may just have ended, and comes again.
        await soon(lambda: proxy.strike(strike, watch=True))


# The number of changes.
CHANGES = 9


async def _change(user: User, seconds: float) -> None:
    """All kinds of changes: some at the beginning of the fault, some at its end."""
    await user.edit("edited", 2)
    await user.create("new", 1)
    await user.remove("removed")
    await asyncio.sleep(seconds / 2)
    await user.edit("edited", 3)
    await user.delete("ended")
    await user.remove("replaced")
    await user.create("replaced", 5)
    await asyncio.sleep(seconds / 2)
    await user.edit("new", 2)


def _shown(record: Record) -> str:
    fault = f" ({record.fault})" if record.fault else ""
    target = record.target.partition("namespaces/")[2] or record.target
    return f"{record.at:.2f} {record.method} {target} {record.answered}{fault}"


# ------------------------------------------------------------------ all of them


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    apiserver: ApiServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Future[str]]]:
    """The outcomes of the chosen cases, by name: some have yet to come."""
    chosen = [
        cast(Case, item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_it_catches_up
    ]
    folder = tmp_path_factory.mktemp("faults")
    results: dict[str, Future[str]] = {case.name: Future() for case in chosen}

    async def all_of_them() -> None:
        upstream, slots = Upstream(apiserver), asyncio.Semaphore(AT_ONCE)

        async def one(number: int, case: Case) -> None:
            async with slots:
                try:
                    line = await play(case, upstream, folder, f"fault-{number}")
                except BaseException as problem:
                    results[case.name].set_exception(problem)
                else:
                    results[case.name].set_result(line)

        await asyncio.gather(*(one(*each) for each in enumerate(chosen)))
        await upstream.close()

    thread = threading.Thread(target=lambda: asyncio.run(all_of_them()))
    thread.start()
    yield results
    thread.join()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_catches_up(case: Case, outcomes: dict[str, Future[str]]) -> None:
    print(outcomes[case.name].result())
