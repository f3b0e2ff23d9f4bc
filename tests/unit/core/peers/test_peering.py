"""Peering: what records say, who serves, and what is written when."""

from __future__ import annotations

import doctest
import itertools
from typing import Any

import pytest

from fnop.core.peers import freezing, peering as module, peers
from fnop.core.peers.asking import PeeringAsk, PeeringPlace
from fnop.core.peers.freezing import (
    Frozen,
    PeeringVerdict,
    Serving,
    Why,
    precedence,
    together,
    transition,
)
from fnop.core.peers.memberships import (
    Leave,
    Looked,
    PeeringFact,
    Placed,
    Unseen,
    has_left,
)
from fnop.core.peers.peering import (
    CLUSTER_KINDS,
    GRACE_SECONDS,
    NAMESPACED_KINDS,
    advance,
    begin,
    kinds_for,
)
from fnop.core.peers.peers import (
    DEV_PRIORITY,
    FREEZE_PRIORITY,
    MalformedRecord,
    Member,
    Mode,
    Peer,
    manual_identity,
    own_identity,
    parse_peer,
    parse_peers,
    record_of,
    removal_patch,
    renewal_patch,
    sight,
)
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import (
    Applied,
    Conflict,
    Freeze,
    Missing,
    Outcome,
    Patch,
    Refused,
    Resume,
    Unknown,
    Unreachable,
)

WALL, MONO = 1_767_225_600.0, 1000.0  # 2026-01-01
LIFETIME = 60


@pytest.mark.parametrize("name", [freezing, module, peers])
def test_the_examples_in_the_docstrings(name: Any) -> None:
    found = doctest.testmod(name)
    assert found.attempted
    assert not found.failed


# --------------------------------------------------------------------- records

# A record, and what is read of it: priority, lifetime, lastseen.
READABLE = [
    ({}, (0, 60, None)),
    ({"priority": None, "lifetime": None, "lastseen": None}, (0, 60, None)),
    ({"priority": 666}, (666, 60, None)),
    ({"priority": -5}, (-5, 60, None)),
    ({"priority": 7.0, "lifetime": 10.5}, (7, 10.5, None)),
    ({"priority": "7", "lifetime": "10"}, (7, 10, None)),
    ({"lifetime": 0}, (0, 0, None)),
    ({"lifetime": -1}, (0, -1, None)),
    ({"lastseen": "2026-01-01T00:00:01"}, (0, 60, WALL + 1)),
    ({"lastseen": "2026-01-01T00:00:01.500000"}, (0, 60, WALL + 1.5)),
    ({"lastseen": "2026-01-01T00:00:01+00:00"}, (0, 60, WALL + 1)),
    ({"lastseen": "2026-01-01T00:00:01.5Z"}, (0, 60, WALL + 1.5)),
    ({"lastseen": "2026-01-01T02:00:01+02:00"}, (0, 60, WALL + 1)),
    ({"lastseen": "2026-01-01 00:00:01"}, (0, 60, WALL + 1)),
    ({"lastseen": "20260101T000001Z"}, (0, 60, WALL + 1)),
    ({"namespace": "x", "runtime": {"a": 1}}, (0, 60, None)),
]

# A record, and what is wrong with it.
MALFORMED = [
    ("text", "it is not a mapping"),
    (["list"], "it is not a mapping"),
    (5, "it is not a mapping"),
    ({"priority": "high"}, "its priority 'high' is not a whole number"),
    ({"priority": 1.5}, "its priority 1.5 is not a whole number"),
    ({"priority": True}, "its priority True is not a whole number"),
    ({"priority": "nan"}, "its priority 'nan' is not a whole number"),
    ({"priority": [1]}, "its priority [1] is not a whole number"),
    ({"lifetime": "long"}, "its lifetime 'long' is not a number of seconds"),
    ({"lifetime": {}}, "its lifetime {} is not a number of seconds"),
    ({"lifetime": "inf"}, "its lifetime 'inf' is not a number of seconds"),
    ({"lifetime": 10**400}, f"its lifetime {10**400} is not a number of seconds"),
    ({"lastseen": "soon"}, "its lastseen 'soon' is not a time"),
    ({"lastseen": ""}, "its lastseen '' is not a time"),
    ({"lastseen": 5}, "its lastseen 5 is not a time"),
    ({"lastseen": "2026-13-01T00:00:00"}, "its lastseen '2026-13-01T00:00:00' is no"),
]


@pytest.mark.parametrize(("record", "expected"), READABLE)
def test_all_that_releases_of_kopf_write_is_read(record: Any, expected: Any) -> None:
    found = parse_peer("x", record)
    assert isinstance(found, Peer)
    assert (found.priority, found.lifetime, found.lastseen) == expected


@pytest.mark.parametrize(("record", "problem"), MALFORMED)
def test_what_is_no_record_is_named(record: Any, problem: str) -> None:
    found = parse_peer("x", record)
    assert isinstance(found, MalformedRecord)
    assert found.problem.startswith(problem)


@pytest.mark.parametrize("status", [None, {}, {"x": None}])
def test_no_records(status: Any) -> None:
    assert parse_peers(status) == ((), ())


@pytest.mark.parametrize("status", ["text", 5, ["x"]])
def test_a_status_that_holds_no_records(status: Any) -> None:
    assert parse_peers(status) == (
        (),
        (MalformedRecord("status", "it is not a mapping"),),
    )


def test_a_malformed_record_hides_no_other() -> None:
    found, malformed = parse_peers({"b": {}, "c": "?", "a": {"priority": 1}})
    assert [each.identity for each in found] == ["a", "b"]
    assert [each.identity for each in malformed] == ["c"]


def test_kopf_reads_what_is_written(recwarn: pytest.WarningsRecorder) -> None:
    kopf = pytest.importorskip("kopf._core.engines.peering")
    record = record_of(100, 60, WALL + 0.25, message="maintenance")
    found = kopf.Peer(identity="x", **record)
    assert (found.priority, found.lifetime.total_seconds()) == (100, 60)
    assert found.lastseen.timestamp() == WALL + 0.25
    # And what Kopf writes is read.
    mine = parse_peer("x", found.as_dict())
    assert mine == Peer("x", 100, 60, WALL + 0.25)


def test_a_freeze_is_a_record_and_its_end_the_removal_of_it() -> None:
    identity = manual_identity(user="ann", host="desk.local")
    record = record_of(FREEZE_PRIORITY, 3600, WALL, message="a migration")
    assert renewal_patch(identity, record) == {
        "status": {
            "ann@desk": {
                "priority": 100,
                "lifetime": 3600,
                "lastseen": "2026-01-01T00:00:00.000000+00:00",
                "message": "a migration",
            }
        }
    }
    assert removal_patch([identity]) == {"status": {"ann@desk": None}}


def test_identities() -> None:
    own = own_identity(user="ann", host="desk.local", wall=WALL, token="abc")
    assert own == "ann@desk/20260101000000/abc"
    pod = own_identity(user="ann", host="x", wall=WALL, token="abc", pod_id="pod-1")
    assert pod == manual_identity(user="ann", host="x", pod_id="pod-1") == "pod-1"
    assert manual_identity(user="ann", host="x", pod_id="") == "ann@x"


@pytest.mark.parametrize("options", [{"identity": ""}, {"lifetime": 0}])
def test_a_member_that_cannot_be(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="peering"):
        Member(**{"identity": "me", **options})


# -------------------------------------------------------------------- lifetimes

# At the first look: the age of a record by its clock → for how long it is alive.
FIRST_LOOKS = [
    (0.0, 60.0),
    (50.0, 10.0),
    (60.0, 0.0),
    (3600.0, 0.0),  # a crash, or a clock that is an hour behind
    (-3600.0, 60.0),  # a clock that is an hour ahead
    (None, 60.0),
]


@pytest.mark.parametrize(("age", "left"), FIRST_LOOKS)
def test_the_first_look_believes_a_record_for_a_lifetime_at_most(
    age: float | None, left: float
) -> None:
    lastseen = None if age is None else WALL - age
    (found,) = sight(None, [Peer("x", lastseen=lastseen)], Now(WALL, MONO))
    assert found.dies == MONO + left
    assert found.forgotten == MONO + 60, "no record is removed for its clock"


@pytest.mark.parametrize("skew", [0.0, 3600.0, -3600.0])
def test_a_change_that_was_seen_is_a_sign_of_life_whatever_its_clock(
    skew: float,
) -> None:
    before = sight(None, [Peer("x", lastseen=WALL + skew)], Now(WALL, MONO))
    renewed = [Peer("x", lastseen=WALL + 50 + skew)]
    (found,) = sight(before, renewed, Now(WALL + 50, MONO + 50))
    assert found.dies == MONO + 110
    again = sight((found,), renewed, Now(WALL + 100, MONO + 100))
    assert again == (found,), "the same record is no new sign"


def test_who_comes_after_the_first_look_is_alive() -> None:
    (found,) = sight((), [Peer("x", lastseen=WALL - 3600)], Now(WALL, MONO))
    assert found.dies == MONO + 60


# --------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("others", list(itertools.product((None, -1, 0, 1), repeat=3)))
def test_the_table_of_precedence(others: tuple[int | None, ...]) -> None:
    alive = [Peer(f"p{n}", each) for n, each in enumerate(others) if each is not None]
    verdict = precedence(alive, 0, "there")
    if 1 in others:
        expected: PeeringVerdict = Frozen(
            Why.OUTRANKED, tuple(p for p in alive if p.priority == 1), ("there",)
        )
    elif 0 in others:
        same = tuple(p for p in alive if p.priority == 0)
        expected = Frozen(Why.TIED, same, ("there",))
    else:
        expected = Serving()
    assert verdict == expected


@pytest.mark.parametrize("pair", list(itertools.combinations(Why, 2)))
def test_of_two_places_the_weightier_word_counts(pair: tuple[Why, Why]) -> None:
    one, other = (Frozen(why, (Peer(why.name),), (why.value,)) for why in pair)
    assert together([other, Serving(), one]) == one
    assert together([Serving()]) == together([]) == Serving()


def test_of_two_places_that_agree_all_peers_are_named() -> None:
    one = Frozen(Why.TIED, (Peer("b"), Peer("a")), ("here",))
    other = Frozen(Why.TIED, (Peer("c"), Peer("a")), ("there",), "words")
    peers = (Peer("a"), Peer("b"), Peer("c"))
    found = together([one, other])
    assert found == Frozen(Why.TIED, peers, ("here", "there"), "words")


ME = Member("me", 5)
VERDICTS: list[PeeringVerdict] = [
    Serving(),
    *(
        Frozen(why, (Peer(name, 7),), ("here",))
        for why in Why
        for name in ("x", "y")
        if name == "x" or why in (Why.OUTRANKED, Why.TIED)
    ),
]


@pytest.mark.parametrize(
    ("before", "after"), list(itertools.product(VERDICTS, VERDICTS))
)
def test_the_table_of_transitions(
    before: PeeringVerdict, after: PeeringVerdict
) -> None:
    effect, line = transition(before, after, ME)
    match before, after:
        case _, Frozen(Why.LEFT):
            assert (effect, line) == (None, None)
        case Serving(), Serving():
            assert (effect, line) == (None, None)
        case Serving(), Frozen(why):
            assert line is not None
            assert effect == Freeze(line.message)
            calm = why in (Why.OUTRANKED, Why.JOINING)
            assert line.level == ("info" if calm else "warning")
        case Frozen(why), Serving():
            assert effect == Resume()
            assert (line is None) is (why is Why.JOINING)
        case _:
            assert effect is None
            quiet = before == after or after.why is Why.JOINING  # type: ignore[union-attr]
            assert (line is None) is quiet


def test_a_line_names_what_is_to_be_done() -> None:
    def said(frozen: Frozen) -> str:
        line = transition(Serving(), frozen, ME)[1]
        assert line is not None
        return line.message

    tied = said(Frozen(Why.TIED, (Peer("x", 5), Peer("y", 5)), ("here",)))
    assert "x (priority 5), y (priority 5)" in tied
    assert "--leader-elect" in tied
    frozen = said(Frozen(Why.OUTRANKED, (Peer("ann", 100, message="a migration"),)))
    assert "ann (priority 100: a migration)" in frozen
    assert "'default'" in said(Frozen(Why.MISSING, (), ("in a",)))
    assert "--standalone" in said(Frozen(Why.UNSEEN, (), ("here",), "forbidden"))
    assert ": forbidden" in said(Frozen(Why.UNSEEN, (), ("here",), "forbidden"))


# ---------------------------------------------------------------------- stories

PLACE = PeeringPlace(CLUSTER_KINDS[0], None)


class Story:
    """An operator named `me`, its clock, and what it was seen to do."""

    def __init__(self, **options: Any) -> None:
        self.peering = begin(Member("me", **{"lifetime": LIFETIME, **options}))
        self.time = 0.0
        self.verdict: PeeringVerdict = self.peering.verdict
        self.effects: list[Freeze | Resume] = []
        self.asks: list[PeeringAsk] = []
        self.says: list[Say] = []
        self.wake: float | None = None
        # The object as the server has it.
        self.status: dict[str, Any] = {}
        self.version = 1

    @property
    def now(self) -> Now:
        return Now(WALL + self.time, MONO + self.time)

    def tell(self, fact: PeeringFact) -> Story:
        move = advance(self.peering, self.now, fact)
        self.peering, asks, self.verdict, effect, wake, says = move
        self.wake = None if wake is None else wake - MONO
        self.asks += asks
        self.says += says
        self.effects += [effect] if effect is not None else []
        return self

    def after(self, seconds: float) -> Story:
        """Let time pass; alarms ring on the way."""
        end = self.time + seconds
        while self.wake is not None and self.wake <= end:
            self.time = max(self.wake, self.time)
            self.tell(AlarmRang())
        self.time = end
        return self

    def placed(self) -> Story:
        return self.tell(Placed((PLACE.kind,)))

    def body(self) -> Body:
        meta = {"uid": "u", "resourceVersion": str(self.version)}
        return Body({"metadata": meta, "status": dict(self.status)})

    def look(self) -> Story:
        """The watch shows the object as it is."""
        return self.tell(Looked(PLACE, self.body()))

    def write(self, identity: str, record: Any) -> Story:
        """Let another client write a record, and the watch show it."""
        self.version += 1
        self.status.pop(identity, None)
        if record is not None:
            self.status[identity] = record
        return self.look()

    def peer(self, identity: str, priority: int = 0, lifetime: int = 60) -> Story:
        return self.write(identity, record_of(priority, lifetime, WALL + self.time))

    @property
    def asked(self) -> PeeringAsk | None:
        """The request that waits for an answer."""
        pending = [
            membership.pending
            for membership in self.peering.memberships
            if membership.pending
        ]
        return self.asks[-1] if pending else None

    @property
    def merge(self) -> Any:
        assert self.asked is not None
        assert isinstance(self.asked.effect, Patch)
        return self.asked.effect.merge

    def answer(self, outcome: Outcome | None = None) -> Story:
        """The server does what it was asked for, or answers something else."""
        asked = self.asked
        assert asked is not None, "nothing was asked for"
        if outcome is None:
            self.version += 1
            for identity, record in self.merge["status"].items():
                self.status.pop(identity, None)
                if record is not None:
                    self.status[identity] = dict(record)
            outcome = Applied(self.body().data)
        return self.tell(Answered(asked.number, outcome))

    @property
    def serves(self) -> bool:
        assert isinstance(self.verdict, Serving) is (
            bool(self.effects) and isinstance(self.effects[-1], Resume)
        )
        return isinstance(self.verdict, Serving)

    def why(self) -> Why | None:
        return self.verdict.why if isinstance(self.verdict, Frozen) else None

    def lines(self, level: str = "") -> list[str]:
        """The messages since the last call, without details."""
        found = [say.message for say in self.says if say.level == (level or say.level)]
        debug = [say.message for say in self.says if say.level == "debug"]
        self.says.clear()
        return [line for line in found if level or line not in debug]


def member(**options: Any) -> Story:
    """An operator that has found a peering object and taken part in it."""
    return Story(**options).placed().look().answer()


def test_standalone_serves_at_once_and_asks_for_nothing() -> None:
    story = Story(mode=Mode.STANDALONE).tell(AlarmRang())
    assert story.serves
    story.placed().peer("x", 100)
    assert story.serves
    assert (story.asks, story.wake, story.lines()) == ([], None, [])
    assert has_left(story.tell(Leave()).peering)


@pytest.mark.parametrize("kinds", [(), (PLACE.kind,)])
def test_auto_serves_where_there_is_no_object_and_says_so_once(
    kinds: tuple[str, ...],
) -> None:
    story = Story().tell(Placed(kinds))
    if kinds:
        assert not story.serves, "not before a look"
        story.tell(Looked(PLACE, None))
    assert story.serves
    (line,) = story.lines()
    assert "no peering object 'default' in the cluster" in line
    story.tell(Placed(kinds)).tell(Looked(PLACE, None))
    assert story.lines() == []


def test_auto_serves_on_while_it_joins_an_object_that_has_just_been_made() -> None:
    story = Story().placed().tell(Looked(PLACE, None))
    story.look()
    assert story.serves
    story.answer()
    assert story.serves
    assert story.effects == [Resume()]
    story.tell(Looked(PLACE, None))
    assert story.lines()[-1].startswith("there is no peering object")
    assert story.serves


def test_but_not_for_long() -> None:
    story = Story().placed().tell(Looked(PLACE, None)).look()
    story.answer(Unreachable("no network")).after(GRACE_SECONDS - 0.1)
    assert story.serves
    story.after(0.1)
    assert story.why() is Why.UNRENEWED


@pytest.mark.parametrize("kinds", [(), (PLACE.kind,)])
def test_mandatory_is_frozen_until_there_is_an_object(kinds: tuple[str, ...]) -> None:
    story = Story(mode=Mode.MANDATORY).tell(Placed(kinds))
    if kinds:
        story.tell(Looked(PLACE, None))
    assert story.why() is Why.MISSING
    (line,) = story.lines("warning")
    assert "'default' in the cluster" in line
    story.placed().look()
    assert not story.serves
    story.answer()
    assert story.serves
    assert story.effects == [Resume()]
    story.tell(Looked(PLACE, None))
    assert story.why() is Why.MISSING
    assert isinstance(story.effects[-1], Freeze)


def test_nobody_serves_before_all_have_been_looked_at_and_the_own_record_stands() -> (
    None
):
    story = Story()
    assert story.tell(AlarmRang()).why() is Why.JOINING
    assert story.placed().why() is Why.JOINING
    assert story.asks == [], "nothing is written before a look"
    assert story.look().why() is Why.JOINING
    assert story.merge == {"status": {"me": record_of(0, 60, WALL)}}
    assert story.lines() == []
    assert story.answer().serves
    assert story.lines() == [
        "peering in clusterfnoppeerings.fnop.dev as me, priority 0"
    ]


def test_a_peer_that_came_first_is_heard_before_anything_is_done() -> None:
    story = Story().placed()
    story.status["x"] = record_of(1, 60, WALL)
    assert story.look().answer().why() is Why.OUTRANKED
    assert story.effects == []


def test_a_peer_that_writes_meanwhile_is_heard_from_the_answer() -> None:
    story = Story().placed().look()
    story.status["x"] = record_of(1, 60, WALL)  # the watch has not shown it
    assert story.answer().why() is Why.OUTRANKED


def test_a_higher_priority_freezes_and_its_end_resumes() -> None:
    story = member()
    story.lines()
    story.peer("dev", DEV_PRIORITY)
    assert story.why() is Why.OUTRANKED
    assert story.lines() == [
        "frozen: outranked by dev (priority 666); this operator has priority 0"
    ]
    assert story.look().lines() == [], "once"
    story.write("dev", None)
    assert story.serves
    assert story.lines() == ["serving again"]
    assert [type(each) for each in story.effects] == [Resume, Freeze, Resume]


def test_the_same_priority_warns_and_freezes() -> None:
    story = member()
    story.lines()
    story.peer("x")
    assert story.why() is Why.TIED
    (line,) = story.lines("warning")
    assert "x (priority 0)" in line
    story.after(30).peer("x")
    assert story.lines() == [], "a renewal is no news"
    story.peer("y")
    (line,) = story.lines("warning")
    assert "x (priority 0), y (priority 0)" in line
    story.peer("z", 1)
    assert story.why() is Why.OUTRANKED
    assert [type(each) for each in story.effects] == [Resume, Freeze]


def test_a_lower_priority_is_no_matter() -> None:
    story = member(priority=1).peer("x")
    assert story.serves


def test_a_frozen_operator_keeps_its_record() -> None:
    story = member().peer("x", 1, lifetime=3600).after(36 + 6)
    assert story.merge["status"].keys() == {"me"}
    assert story.why() is Why.OUTRANKED


# ------------------------------------------------------------------------ death


def test_the_end_of_a_lifetime_is_looked_at_before_it_is_believed() -> None:
    story = member().peer("x", 1, lifetime=10)
    before = len(story.asks)
    story.after(10)
    assert len(story.asks) == before + 1, "a renewal out of turn"
    assert story.why() is Why.OUTRANKED
    assert story.answer().serves


def test_a_peer_whose_renewal_was_not_shown_lives_on() -> None:
    story = member().peer("x", 1, lifetime=10).after(9)
    story.status["x"] = record_of(1, 10, WALL + 9)  # the watch is broken
    story.after(1).answer()
    assert story.why() is Why.OUTRANKED
    story.after(9)
    assert story.asked is None
    story.after(1).answer()
    assert story.serves


def test_the_record_of_a_crash_long_ago_holds_nobody_up() -> None:
    story = Story().placed()
    story.status["x"] = record_of(0, 60, WALL - 3600)
    assert story.look().answer().serves


@pytest.mark.parametrize("skew", [3600.0, -3600.0])
def test_a_peer_with_a_wrong_clock_is_neither_immortal_nor_dead(skew: float) -> None:
    story = member()
    for _ in range(5):
        story.write("x", record_of(1, 60, WALL + story.time + skew))
        assert story.why() is Why.OUTRANKED
        story.after(36)
        if story.asked is not None:
            story.answer()
        story.after(10)
        assert story.why() is Why.OUTRANKED
    story.after(14)
    assert story.asked is not None
    assert story.answer().serves


def test_a_freeze_for_an_hour_ends_in_time_for_who_starts_in_the_middle() -> None:
    story = Story().placed()
    story.status["ann@desk"] = record_of(100, 3600, WALL - 1800, "a migration")
    story.look().answer()
    assert any("a migration" in line for line in story.lines())
    while story.time < 1800 - 1:
        story.after(1)
        if story.asked is not None:
            story.answer()
        assert not story.serves
    story.after(1)
    assert story.answer().serves


def test_a_record_without_a_time_lives_for_its_lifetime() -> None:
    """With Kopf it lives for ever: what is missing is now, at every look."""
    story = Story().placed()
    story.status["x"] = {"priority": 1, "lifetime": 10}
    story.look().answer()
    assert not story.serves
    story.after(10).answer()
    assert story.serves


# -------------------------------------------------------------------- malformed


def test_a_malformed_record_is_ignored_and_named_once() -> None:
    """Kopf's watcher dies of it (E68), and its operator is deaf from then on."""
    story = member()
    story.lines()
    story.write("x", {"priority": 100, "lastseen": "soon"})
    assert story.serves
    (line,) = story.lines("warning")
    assert "'x'" in line
    assert "'soon'" in line
    story.write("x", {"priority": 100, "lastseen": "later"})
    assert story.lines() == []
    assert story.peer("y", 1).why() is Why.OUTRANKED, "others are heard"
    story.write("y", None)
    story.write("x", {"priority": 100})
    assert story.why() is Why.OUTRANKED, "now it can be read"
    story.lines()
    story.write("x", "?")
    assert len(story.lines("warning")) == 1, "it is named again after a good one"


def test_a_malformed_record_is_never_removed() -> None:
    story = member().write("x", "?")
    for _ in range(10):
        story.after(20)
        if story.asked is not None:
            assert story.merge["status"].keys() == {"me"}
            story.answer()
    assert story.status["x"] == "?"


# ---------------------------------------------------------------- own renewals


@pytest.mark.parametrize(("jitter", "after"), [(0.0, 36.0), (0.5, 39.0), (1.0, 42.0)])
def test_a_record_is_renewed_in_its_time(jitter: float, after: float) -> None:
    story = Story().placed().look()
    asked = story.asked
    assert asked is not None
    body = {**story.body().data, "status": {"me": record_of(0, 60, WALL)}}
    move = advance(
        story.peering, story.now, Answered(asked.number, Applied(body)), jitter
    )
    assert move.wake == MONO + after
    later = Now(WALL + after, MONO + after)
    assert len(advance(move.peering, later, AlarmRang()).asks) == 1


@pytest.mark.parametrize("lifetime", [1, 2, 5, 60, 3600])
def test_there_is_time_for_several_tries(lifetime: int) -> None:
    story = member(lifetime=lifetime)
    start = story.time
    tries = 0
    while story.serves:
        assert story.wake is not None
        story.time = story.wake
        story.tell(AlarmRang())
        if story.asked is not None:
            tries += 1
            story.answer(Unreachable("no network"))
    assert tries >= 3
    assert story.time - start == pytest.approx(0.9 * lifetime)


def test_who_cannot_renew_its_record_freezes_before_it_dies_for_others() -> None:
    """A Kopf operator goes on, while others take it for dead (E69)."""
    story = member().after(39)
    story.lines()
    story.answer(Unreachable("no network"))
    while story.time < 53.9:
        assert story.serves
        story.after(0.1)
        if story.asked is not None:
            story.answer(Unreachable("no network"))
    story.after(0.2)
    assert story.why() is Why.UNRENEWED
    (line,) = story.lines("warning")
    assert "no network" in line
    if story.asked is None:
        story.after(3)
    assert story.answer().serves
    assert story.lines() == ["serving again"]


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    story = member().after(39)
    late = story.asked
    assert late is not None
    assert late.before == MONO + 49, "what was not sent by then need not be"
    story.after(9.9)
    assert len(story.asks) == 2
    story.after(0.1 + 0.5)
    assert len(story.asks) == 3
    before = story.peering
    story.tell(Answered(late.number, Applied(story.body().data)))
    assert story.peering == before, "what is late is let be"


def test_an_answer_counts_from_when_it_was_asked_for() -> None:
    story = member().after(39 + 9)
    story.answer()
    story.after(54 - 9 - 0.1)
    assert story.serves
    story.after(0.1)
    assert story.why() is Why.UNRENEWED


def test_after_a_long_pause_nobody_serves_on() -> None:
    """A process that was stopped wakes up: others may have taken over."""
    story = member().peer("x", -1)
    story.time += 3600
    story.tell(AlarmRang())
    assert story.why() is Why.UNRENEWED
    story.status["x"] = record_of(7, 60, WALL + story.time)
    story.answer()
    assert story.why() is Why.OUTRANKED


def test_a_refusal_is_told_once_and_what_to_do() -> None:
    story = Story().placed().look()
    refused = Refused(403, "forbidden: no patch")
    story.answer(refused)
    assert story.why() is Why.UNRENEWED
    first, second = story.lines("warning")
    assert "the verb patch" in first
    assert second.startswith("frozen: ")
    for _ in range(5):
        story.after(3).answer(refused)
    assert story.lines("warning") == []


@pytest.mark.parametrize(
    "outcome",
    [
        Unreachable("no network"),
        Unknown("timeout"),
        Conflict("busy"),
        Refused(403, "forbidden"),
        Refused(422, "too large"),
    ],
)
def test_a_renewal_that_fails_is_tried_again_soon(outcome: Outcome) -> None:
    story = member().after(39).answer(outcome)
    assert story.asked is None
    assert story.serves
    story.after(0.5)
    assert story.asked is not None


def test_a_server_that_asks_for_patience_gets_some_of_it() -> None:
    story = member().after(39).answer(Unreachable("busy", retry_after_seconds=7.0))
    assert story.after(6.9).asked is None
    assert story.after(0.1).asked is not None
    story.answer(Unreachable("busy", retry_after_seconds=10_000.0))
    assert story.after(LIFETIME / 2).asked is not None


def test_a_renewal_tells_that_the_object_is_gone() -> None:
    story = member().after(39).answer(Missing("not found"))
    assert story.serves
    assert any("no peering object" in line for line in story.lines())
    strict = member(mode=Mode.MANDATORY).after(39).answer(Missing("not found"))
    assert strict.why() is Why.MISSING


def test_stealth_keeps_renewals_out_of_the_log() -> None:
    loud, quiet = (member(stealth=stealth) for stealth in (False, True))
    for story, expected in ((loud, 1), (quiet, 0)):
        story.lines()
        story.after(39).answer()
        assert len(story.lines("debug")) == expected


# ----------------------------------------------------------- another client's writes


def test_a_record_that_is_taken_away_is_written_again() -> None:
    story = member().after(10)
    story.lines()
    story.write("me", None)
    assert story.serves
    assert story.merge["status"]["me"]["lastseen"].startswith("2026-01-01T00:00:10")
    (line,) = story.lines("warning")
    assert "taken this operator's record away" in line
    assert story.answer().serves
    assert story.effects == [Resume()]


def test_one_removal_counts_once_however_often_it_is_shown() -> None:
    story = member().after(10)
    story.lines()
    story.write("me", None).answer(Unreachable("no network"))
    for _ in range(5):
        story.version += 1
        story.look()
    assert len(story.lines("warning")) == 1
    assert story.serves


def test_a_record_that_is_on_its_way_was_not_taken_away() -> None:
    story = Story().placed().look()
    story.peer("x", -1)  # the watch is quicker than the answer
    assert len(story.asks) == 1
    assert story.answer().serves
    assert story.lines("warning") == []


def test_an_answer_that_shows_nothing_is_a_renewal_all_the_same() -> None:
    story = Story().placed().look()
    assert story.answer(Applied(None)).serves


def test_but_serving_on_it_is_for_a_moment() -> None:
    story = member().after(10).write("me", None).after(GRACE_SECONDS)
    assert story.why() is Why.UNRENEWED
    assert story.answer().serves


def test_who_is_taken_away_again_and_again_freezes_until_it_stands() -> None:
    """By a Kopf operator whose clock is ahead: for that one, this one is dead."""
    story = member().after(10)
    story.lines()
    for expected in (True, True, False):
        story.write("me", None)
        assert story.serves is expected
        story.after(2)
        story.answer()
        assert story.serves is expected
    assert story.why() is Why.REMOVED
    first, freeze = story.lines("warning")
    assert freeze.endswith("synchronize the clocks of the operators' machines"), first
    story.after(30)
    assert story.why() is Why.REMOVED
    story.after(12).answer()
    assert story.serves


def test_a_late_watch_takes_nothing_away() -> None:
    story = Story().placed().look()
    early = story.body()
    story.answer()
    story.tell(Looked(PLACE, early))
    assert story.asked is None
    assert story.serves
    assert story.lines("warning") == []


def test_the_record_of_an_earlier_process_of_this_name_is_written_over() -> None:
    """A container that is restarted in its pod keeps its POD_ID."""
    story = Story().placed()
    story.status["me"] = record_of(0, 60, WALL - 5)
    assert story.look().answer().serves


def test_a_second_process_of_the_same_name_freezes_both() -> None:
    story = member().after(10)
    story.lines()
    story.peer("me")
    assert story.why() is Why.DOUBLED
    (line,) = story.lines("warning")
    assert "POD_ID" in line
    story.after(29).answer()
    assert story.why() is Why.DOUBLED
    story.after(31)
    assert story.serves


def test_an_own_record_that_a_slow_watch_shows_is_known_again() -> None:
    story = member()
    first = dict(story.status["me"])
    story.after(39).answer()
    story.write("me", first)
    assert story.serves


# ------------------------------------------------------------------------ tidying


def test_dead_records_are_removed_if_nothing_has_changed() -> None:
    story = member().peer("x", -1, lifetime=10).after(39).answer()
    assert story.merge == {
        "metadata": {"resourceVersion": str(story.version)},
        "status": {"x": None},
    }
    story.answer()
    assert story.status.keys() == {"me"}
    assert story.asked is None


@pytest.mark.parametrize(
    "outcome",
    [Conflict("changed"), Unreachable("busy"), Refused(403, "no"), Unknown("?")],
)
def test_a_removal_is_tried_once_in_each_version(outcome: Outcome) -> None:
    story = member().peer("x", -1, lifetime=10).after(39).answer()
    story.answer(outcome)
    assert story.asked is None
    assert story.serves
    story.peer("y", -1)
    assert story.merge["status"] == {"x": None}


def test_the_first_of_the_living_tidies_and_the_others_wait() -> None:
    story = member().peer("x", -1, lifetime=10).peer("a", -1, lifetime=3600)
    removals: list[str] = []
    while story.time < 200 and not removals:
        story.after(1)
        if story.asked is not None:
            removals = [each for each in story.merge["status"] if each != "me"]
            story.answer()
    assert removals == ["x"]
    assert 70 <= story.time <= 115


def test_no_living_peer_is_removed_for_its_clock() -> None:
    """Kopf removes it at once, and that one its own, and so on."""
    story = Story().placed()
    story.status["x"] = record_of(-1, 60, WALL - 3600)
    story.look().answer()
    for _ in range(4):
        story.after(39)
        assert story.merge["status"].keys() == {"me"}
        story.answer()
        assert story.asked is None
        story.write("x", record_of(-1, 60, WALL + story.time - 3600))
    story.after(39).answer().after(39).answer()
    assert story.merge["status"] == {"x": None}


# ------------------------------------------------------------------------ leaving


def test_who_leaves_takes_its_record_along() -> None:
    story = member().tell(Leave())
    assert story.why() is Why.LEFT
    assert story.merge == {"status": {"me": None}}
    assert not has_left(story.peering)
    story.answer()
    assert has_left(story.peering)
    assert story.wake is None
    story.look().after(3600)
    assert len(story.asks) == 2, "it is not written again"
    assert story.effects == [Resume()], "there is nothing left to freeze"


def test_a_renewal_under_way_is_waited_for_first() -> None:
    story = member().after(39).tell(Leave())
    assert "lastseen" in story.merge["status"]["me"]
    story.answer()
    assert story.merge == {"status": {"me": None}}


@pytest.mark.parametrize(
    ("outcome", "done"),
    [
        (Missing("not found"), True),
        (Unreachable("no network"), False),
        (Unknown("timeout"), False),
    ],
)
def test_leaving_is_tried_again(outcome: Outcome, done: bool) -> None:
    story = member().tell(Leave()).answer(outcome)
    assert has_left(story.peering) is done
    if not done:
        story.after(0.5).answer()
        assert has_left(story.peering)


def test_who_has_written_nothing_leaves_at_once() -> None:
    assert has_left(Story().placed().tell(Leave()).peering)
    assert has_left(Story().tell(Leave()).peering)


# ----------------------------------------------------------------- several places


def test_the_kinds_of_both_groups_and_of_fnop() -> None:
    assert kinds_for(None) == CLUSTER_KINDS
    assert kinds_for(("a",)) == NAMESPACED_KINDS
    groups = {kind.split(".", 2)[2] for kind in (*CLUSTER_KINDS, *NAMESPACED_KINDS)}
    assert groups == {"fnop.dev", "kopf.dev", "zalando.org"}


class Town(Story):
    """An operator of two namespaces, with objects of two kinds in each."""

    places = tuple(
        PeeringPlace(kind, namespace)
        for namespace in ("a", "b")
        for kind in (NAMESPACED_KINDS[0], NAMESPACED_KINDS[1])
    )

    def __init__(self, *present: int, **options: Any) -> None:
        super().__init__(**options)
        self.tell(Placed(NAMESPACED_KINDS[:2], ("a", "b")))
        for number, place in enumerate(self.places):
            self.show(place, {} if number in present else None)

    def show(self, place: PeeringPlace, status: dict[str, Any] | None) -> Town:
        self.version += 1
        meta = {"uid": str(place), "resourceVersion": str(self.version)}
        body = Body({"metadata": meta, "status": status})
        self.tell(Looked(place, None if status is None else body))
        return self

    def renew(self) -> Town:
        """Answer all requests, without any other client."""
        for ask in list(self.asks):
            assert isinstance(ask.effect, Patch)
            self.version += 1
            meta = {"uid": str(ask.place), "resourceVersion": str(self.version)}
            body = {"metadata": meta, "status": ask.effect.merge["status"]}
            self.tell(Answered(ask.number, Applied(body)))
        return self


def test_every_object_there_is_gets_a_record() -> None:
    town = Town(0, 1, 2)
    assert {ask.place for ask in town.asks} == set(town.places[:3])
    targets = [ask.effect.target for ask in town.asks if isinstance(ask.effect, Patch)]
    assert all(
        (target.resource, target.name, target.namespace)
        == (ask.place.kind, "default", ask.place.namespace)
        for target, ask in zip(targets, town.asks, strict=True)
        if target is not None
    )
    assert not town.serves
    assert town.renew().serves


def test_a_conflict_in_one_namespace_freezes_everywhere() -> None:
    town = Town(0, 1, 2).renew()
    town.show(town.places[2], {"x": {"priority": 1}, **own_of(town, 2)})
    assert town.why() is Why.OUTRANKED
    town.show(town.places[0], {"y": {}, **own_of(town, 0)})
    assert town.why() is Why.OUTRANKED, "what weighs more is told"
    town.show(town.places[2], own_of(town, 2))
    assert town.why() is Why.TIED
    town.show(town.places[0], own_of(town, 0))
    assert town.serves


def own_of(town: Town, number: int) -> dict[str, Any]:
    place = town.places[number]
    (merge,) = (
        ask.effect.merge
        for ask in town.asks
        if ask.place == place and isinstance(ask.effect, Patch)
    )
    return dict(merge["status"])


def test_mandatory_needs_an_object_in_each_namespace_of_any_kind() -> None:
    town = Town(0, mode=Mode.MANDATORY).renew()
    assert town.why() is Why.MISSING
    assert town.verdict == Frozen(Why.MISSING, (), ("in b",))
    town.asks.clear()
    town.show(town.places[3], {}).renew()
    assert town.serves


def test_auto_names_the_namespaces_without_an_object() -> None:
    town = Town(0).renew()
    assert town.serves
    (line,) = (line for line in town.lines() if "no peering object" in line)
    assert line.count(" in ") == 1
    assert "in b" in line


def test_a_namespace_that_is_added_does_not_interrupt_and_one_that_goes_is_let_go() -> (
    None
):
    town = Town(0, 2).renew()
    town.tell(Placed(NAMESPACED_KINDS[:2], ("a", "b", "c")))
    assert town.serves
    new = PeeringPlace(NAMESPACED_KINDS[0], "c")
    town.show(new, {"x": {"priority": 1}})
    assert town.why() is Why.OUTRANKED
    town.tell(Placed(NAMESPACED_KINDS[:2], ("a", "b")))
    assert town.serves


def test_a_place_that_cannot_be_looked_at_is_named() -> None:
    story = Story().placed()
    story.tell(Unseen(PLACE, "forbidden: no list"))
    assert story.why() is Why.UNSEEN
    (line,) = story.lines("warning")
    assert "no list" in line
    story.tell(Unseen(PLACE, "forbidden: no list"))
    assert story.lines() == []
    story.look().answer()
    assert story.serves
    story.tell(Unseen(PLACE, "forbidden: no watch"))
    assert story.serves, "renewals show what the watch does not"


def test_facts_of_strangers_are_let_be() -> None:
    story = member()
    before = story.peering
    story.tell(Answered(99, Missing("?")))
    story.tell(Looked(PeeringPlace("strange.v1.kind", None), None))
    story.tell(Unseen(PeeringPlace("strange.v1.kind", None), "?"))
    assert story.peering == before
