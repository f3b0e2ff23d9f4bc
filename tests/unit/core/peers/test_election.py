"""Leader election: what the operator reads in a Lease, and when it writes."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.core.peers.asking import Ask
from fnop.core.peers.election import (
    ElectionFact,
    Resign,
    advance,
    begin,
    has_resigned,
    may_start,
)
from fnop.core.peers.lease import (
    LEASES,
    Candidate,
    ElectionVerdict,
    Leading,
    Lease,
    Resigned,
    Standby,
    Timing,
    parse_lease,
)
from fnop.core.seam.commands import Say
from fnop.core.seam.inputs import AlarmRang, Answered
from fnop.core.values.body import Body
from fnop.core.values.now import Now
from fnop.effects import (
    Applied,
    Conflict,
    Create,
    Get,
    Missing,
    Outcome,
    Patch,
    Refused,
    Target,
    Unknown,
    Unreachable,
)

WALL, MONO = 1_767_225_600.0, 1000.0  # 2026-01-01
TARGET = Target(LEASES, "operator", "default")


# --------------------------------------------------------------------- parsing

SPECS = [
    ({}, Lease()),
    (None, Lease()),
    ("strange", Lease()),
    ({"holderIdentity": None}, Lease()),
    ({"holderIdentity": ""}, Lease()),
    ({"holderIdentity": "a"}, Lease("a")),
    ({"leaseDurationSeconds": 15}, Lease("", 15.0)),
    ({"leaseDurationSeconds": 0}, Lease()),
    ({"leaseDurationSeconds": -1}, Lease()),
    ({"leaseDurationSeconds": "15"}, Lease()),
    ({"leaseTransitions": 7}, Lease("", None, 7)),
    ({"leaseTransitions": None}, Lease()),
    ({"renewTime": "soon", "acquireTime": 5, "strategy": "x"}, Lease()),
]


@pytest.mark.parametrize(("spec", "expected"), SPECS)
def test_a_lease_is_parsed(spec: Any, expected: Lease) -> None:
    assert parse_lease(Body({"spec": spec})) == expected


def test_a_lease_has_a_version() -> None:
    found = parse_lease(Body({"metadata": {"uid": "u", "resourceVersion": "5"}}))
    assert (found.uid, found.version) == ("u", "5")


@pytest.mark.parametrize(
    ("lease", "renew", "retry"),
    [(10, 10, 2), (15, 2.4, 2), (15, 10, 0), (15, 10, -1)],
)
def test_timings_that_cannot_work_are_refused(
    lease: int, renew: float, retry: float
) -> None:
    with pytest.raises(ValueError, match="election: "):
        Timing(lease, renew, retry)


def test_a_candidate_needs_an_identity() -> None:
    with pytest.raises(ValueError, match="identity"):
        Candidate("", "default", "operator")


# --------------------------------------------------------------------- stories


class Story:
    """A candidate named `me`, its clock, the Lease, and what it was seen to do."""

    def __init__(self, lease: dict[str, Any] | None = None) -> None:
        self.election = begin(Candidate("me", "default", "operator"))
        self.time = 0.0
        self.verdict: ElectionVerdict = self.election.verdict
        self.asks: list[Ask] = []
        self.says: list[Say] = []
        self.wake: float | None = None
        # The Lease's spec on the server; None if it is missing.
        self.lease = lease
        self.version = 1

    @property
    def now(self) -> Now:
        return Now(WALL + self.time, MONO + self.time)

    def tell(self, fact: ElectionFact) -> Story:
        move = advance(self.election, self.now, fact)
        self.election, ask, self.verdict, wake, says = move
        self.wake = None if wake is None else wake - MONO
        self.asks += [ask] if ask is not None else []
        self.says += says
        assert self.wake is None or self.wake > self.time
        return self

    def begin(self) -> Story:
        return self.tell(AlarmRang())

    def after(self, seconds: float) -> Story:
        """Let time pass; alarms ring on the way."""
        end = self.time + seconds
        while self.wake is not None and self.wake <= end:
            self.time = self.wake
            self.tell(AlarmRang())
        self.time = end
        return self

    def write(self, **spec: Any) -> Story:
        """Write the Lease as another client."""
        self.version += 1
        self.lease = {**(self.lease or {}), **spec}
        return self

    def asked(self) -> Any:
        """The effect that waits for an answer."""
        return self.asks[-1].effect if self.election.pending else None

    def spec(self) -> dict[str, Any]:
        """The spec to be written."""
        effect = self.asked()
        if isinstance(effect, Create):
            found: dict[str, Any] = dict(effect.manifest["spec"])
            return found
        assert isinstance(effect, Patch)
        return dict(effect.merge["spec"])

    def answer(self, outcome: Outcome | None = None) -> Story:
        """The server does what it was asked for, or answers something else."""
        assert self.asked() is not None, "nothing was asked for"
        return self.tell(Answered(self.asks[-1].number, outcome or self.served()))

    def served(self) -> Outcome:
        match self.asked():
            case Create() if self.lease is not None:
                return Conflict("it exists", "AlreadyExists")
            case Get() | Patch() if self.lease is None:
                return Missing("not found")
            case Create(manifest):
                self.write(**manifest["spec"])
            case Patch(merge=merge):
                if merge["metadata"]["resourceVersion"] != str(self.version):
                    return Conflict("it has been modified")
                self.write(**merge["spec"])
            case _:
                pass
        meta = {"uid": "u", "resourceVersion": str(self.version)}
        return Applied({"metadata": meta, "spec": dict(self.lease or {})})

    def leads(self) -> bool:
        leads = isinstance(self.verdict, Leading)
        assert may_start(self.election, self.now) is leads
        return leads

    def lines(self, level: str = "") -> list[str]:
        found = [say.message for say in self.says if say.level == (level or say.level)]
        self.says.clear()
        return found


def held(by: str = "other", seconds: int = 15, transitions: int = 4) -> dict[str, Any]:
    return {
        "holderIdentity": by,
        "leaseDurationSeconds": seconds,
        "leaseTransitions": transitions,
        "acquireTime": "2020-01-01T00:00:00.000000Z",
        "renewTime": "2020-01-01T00:00:00.000000Z",
    }


def leader() -> Story:
    """One that has just taken the Lease, at time zero."""
    return Story(held("")).begin().answer().answer()


def standby(**options: Any) -> Story:
    """One that has just seen another hold the Lease, at time zero."""
    return Story(held(**options)).begin().answer()


# ------------------------------------------------------------------- acquiring


def test_it_reads_before_it_writes() -> None:
    story = Story().begin()
    assert story.asked() == Get(TARGET)
    assert story.verdict == Standby()


def test_a_lease_that_never_was_is_made() -> None:
    story = Story().begin().answer()
    assert story.asked() == Create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "operator", "namespace": "default"},
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T00:00:00.000000Z",
                "leaseTransitions": 0,
            },
        }
    )
    story.answer()
    assert story.verdict == Leading(0, MONO + 10)


@pytest.mark.parametrize("spec", [held(""), {}, {"leaseTransitions": 4}])
def test_a_lease_without_a_holder_is_taken_at_once(spec: dict[str, Any]) -> None:
    story = Story(spec).begin().answer()
    before = spec.get("leaseTransitions", 0)
    assert story.asked() == Patch(
        TARGET,
        {
            "metadata": {"resourceVersion": "1"},
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T00:00:00.000000Z",
                "leaseTransitions": before + 1,
            },
        },
    )
    story.answer()
    assert story.verdict == Leading(before + 1, MONO + 10)
    assert story.lines() == [
        f"leading: lease default/operator is held, by transition {before + 1}"
    ]


def test_a_lease_that_is_held_is_waited_for_whatever_its_times_say() -> None:
    story = standby()
    assert story.asked() is None
    assert story.verdict == Standby("other")
    assert story.lines() == ["standing by: lease default/operator is held by other"]
    while story.time < 14.9:
        story.after(0.1)
        if story.asked() is not None:
            assert story.asked() == Get(TARGET)
            story.answer()
    assert story.lines() == [], "once"
    story.after(0.2)
    assert story.spec()["leaseTransitions"] == 5
    story.answer()
    assert story.leads()


def test_a_renewal_starts_the_wait_anew() -> None:
    story = standby()
    for _ in range(10):
        story.write(renewTime="2020-01-01T00:00:10.000000Z").after(4.4)
        if story.asked() is not None:
            assert story.asked() == Get(TARGET)
            story.answer()
    assert story.time > 40


def test_any_write_is_a_sign_of_life() -> None:
    story = standby()
    for _ in range(10):
        story.version += 1  # a label, say
        story.after(4.4)
        if story.asked() is not None:
            assert story.asked() == Get(TARGET)
            story.answer()


def test_the_wait_counts_from_when_the_answer_came() -> None:
    story = Story(held()).begin().after(4).answer()
    taken = wait_for_write(story)
    assert taken == pytest.approx(19)


def test_the_holders_own_duration_is_what_is_waited_for() -> None:
    assert wait_for_write(standby(seconds=60)) == pytest.approx(60)
    assert wait_for_write(standby(seconds=3)) == pytest.approx(3)
    story = Story({"holderIdentity": "other"}).begin().answer()
    assert wait_for_write(story) == pytest.approx(15)


def wait_for_write(story: Story) -> float:
    """The time of the candidate's first write, while no other client writes."""
    while True:
        if isinstance(story.asked(), (Create, Patch)):
            return story.time
        if story.asked() is not None:
            story.answer()
        else:
            assert story.wake is not None
            story.after(story.wake - story.time)


@pytest.mark.parametrize(("jitter", "later"), [(0.0, 2.0), (0.5, 3.2), (1.0, 4.4)])
def test_looks_are_spread(jitter: float, later: float) -> None:
    story = Story(held()).begin()
    answer = Answered(story.asks[-1].number, story.served())
    move = advance(story.election, story.now, answer, jitter)
    assert move.wake == pytest.approx(MONO + later)


def test_who_is_too_late_looks_who_was_quicker() -> None:
    story = Story(held("")).begin().answer()
    story.write(**held("other", transitions=5)).answer()
    assert story.asked() == Get(TARGET)
    story.answer()
    assert story.verdict == Standby("other")
    story = Story().begin().answer().write(**held("other")).answer().answer()
    assert story.verdict == Standby("other")


# -------------------------------------------------------------------- renewing


def test_the_leader_renews_every_retry_period() -> None:
    story = leader()
    for number in range(1, 4):
        story.after(2)
        assert story.asked() == Patch(
            TARGET,
            {
                "metadata": {"resourceVersion": str(story.version)},
                "spec": {
                    "holderIdentity": "me",
                    "leaseDurationSeconds": 15,
                    "renewTime": f"2026-01-01T00:00:0{2 * number}.000000Z",
                },
            },
        )
        story.answer()
        assert story.verdict == Leading(5, MONO + 2 * number + 10)
    assert story.lease is not None
    assert story.lease["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert story.lease["leaseTransitions"] == 5


def test_the_deadline_counts_from_when_the_renewal_was_sent() -> None:
    story = leader().after(2 + 4).answer()
    assert story.verdict == Leading(5, MONO + 12)


@pytest.mark.parametrize(
    "outcome",
    [
        Unreachable("no network"),
        Unknown("timeout"),
        Refused(403, "forbidden"),
        None,  # no answer at all
    ],
)
def test_who_cannot_renew_leads_until_the_deadline_and_no_longer(
    outcome: Outcome | None,
) -> None:
    story = leader()
    while story.time < 9.8:
        story.after(0.1)
        assert story.leads()
        if story.asked() is not None and outcome is not None:
            story.answer(outcome)
    assert len(story.asks) > 3
    story.lines()
    story.after(0.3)
    assert not story.leads()
    assert story.verdict == Standby("me")
    (line,) = story.lines("warning")
    assert line.startswith("not leading any more")
    # It continues to try, and leads again if no other one has meanwhile.
    story.after(5)
    while not story.leads():
        if story.asked() is None:
            story.after(0.1)
        else:
            story.answer()
    assert isinstance(story.verdict, Leading)
    assert story.verdict.epoch == 5, "the same as before: it never changed hands"


def test_no_request_starts_after_the_deadline_also_if_nobody_woke_up_to_see_it() -> (
    None
):
    story = leader()
    assert may_start(story.election, Now(WALL, MONO + 9.99))
    assert not may_start(story.election, Now(WALL, MONO + 10))


def test_an_answer_after_the_deadline_makes_no_leader() -> None:
    story = Story(held("")).begin().answer()
    story.time += 11  # the process was paused
    story.answer()
    assert not story.leads()
    story.answer()
    assert story.verdict == Leading(5, MONO + 21)


def test_who_finds_another_holder_stops_at_once() -> None:
    story = leader().after(2)
    story.write(**held("other", transitions=6)).answer()
    assert story.leads(), "something has happened; what, is asked for at once"
    assert story.asked() == Get(TARGET)
    story.answer()
    assert story.verdict == Standby("other")
    assert "held by other" in story.lines("warning")[0]


def test_a_harmless_change_of_the_lease_is_lived_with() -> None:
    story = leader().after(2)
    story.version += 1
    story.answer().answer()
    assert story.leads()
    story.after(2)
    assert isinstance(story.asked(), Patch)
    story.answer()
    assert story.verdict == Leading(5, MONO + 14)
    assert len(story.asks) == 5


def test_a_claim_whose_answer_was_lost_is_found_and_renewed() -> None:
    story = Story(held("")).begin().answer()
    story.served()  # it was done
    story.answer(Unknown("timeout"))
    assert not story.leads()
    assert story.asked() == Get(TARGET)
    story.answer()
    assert not story.leads(), "nobody knows for how long it is held"
    story.after(2).answer()
    assert story.verdict == Leading(5, MONO + 12)


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    story = leader().after(2)
    late = Answered(story.asks[-1].number, story.served())
    assert story.asks[-1].before == MONO + 7, "what was not sent by then need not be"
    story.after(4.9)
    assert len(story.asks) == 3
    story.after(0.1)
    assert story.asked() == Get(TARGET)
    before = story.election
    story.tell(late)
    assert story.election == before
    story.answer().answer()
    assert story.leads()


def test_a_refusal_is_told_once_and_what_to_do() -> None:
    story = Story().begin()
    for _ in range(4):
        story.answer(Refused(403, "forbidden: no get")).after(4.5)
    (line,) = story.lines("warning")
    assert "no get" in line
    assert "get, create and patch on leases" in line


def test_an_unreachable_server_is_asked_again_and_again() -> None:
    story = Story(held("")).begin()
    for _ in range(4):
        story.answer(Unreachable("no network"))
        assert story.asked() is None
        story.after(3.3)
    assert story.lines() == ["lease default/operator: no network"]
    story.answer().answer()
    assert story.leads()


# --------------------------------------------------------------------- deleted


def test_the_leader_of_a_lease_that_is_deleted_stops_and_makes_another() -> None:
    story = leader().after(2)
    story.lease = None
    story.answer()
    assert not story.leads()
    assert "was deleted" in story.lines("warning")[0]
    story.after(2)
    assert story.spec()["leaseTransitions"] == 6
    story.answer()
    assert story.leads()


def test_others_wait_for_the_leader_of_a_lease_that_is_deleted() -> None:
    """It may not know it yet."""
    story = standby().after(3.3)
    story.lease = None
    story.answer()
    assert wait_for_write(story) == pytest.approx(18.3)
    assert isinstance(story.asked(), Create)
    assert story.spec()["leaseTransitions"] == 5


EMPTIED = [
    {"holderIdentity": "", "leaseDurationSeconds": None, "leaseTransitions": None},
    {"holderIdentity": None},
]


@pytest.mark.parametrize("emptied", EMPTIED)
def test_others_wait_for_the_leader_of_a_lease_that_is_emptied(
    emptied: dict[str, Any],
) -> None:
    """As by `kubectl edit`: it may not know it yet."""
    story = standby().after(3.3)
    story.write(**emptied)
    story.answer()
    assert wait_for_write(story) == pytest.approx(18.3)
    assert isinstance(story.asked(), Patch)
    assert story.spec()["leaseTransitions"] == 5


@pytest.mark.parametrize("emptied", EMPTIED)
def test_the_leader_of_a_lease_that_is_emptied_stops_and_takes_it_again(
    emptied: dict[str, Any],
) -> None:
    story = leader().after(2)
    story.write(**emptied)
    story.answer().answer()
    assert not story.leads()
    assert "held by nobody" in story.lines("warning")[0]
    story.after(2)
    assert story.spec()["leaseTransitions"] == 6
    story.answer()
    assert story.leads()


def test_a_lease_that_comes_back_is_seen() -> None:
    story = standby().after(3.3)
    lease, story.lease = story.lease, None
    story.answer().after(3.3)
    story.lease = lease
    story.answer()
    assert wait_for_write(story) == pytest.approx(6.6 + 15)


def test_a_namespace_that_is_not_there_is_named() -> None:
    story = Story().begin().answer()
    story.answer(Missing('namespaces "default" not found'))
    assert not story.leads()
    assert story.wake is not None
    assert wait_for_write(story) > 0


# ------------------------------------------------------------------- resigning


def test_who_resigns_gives_the_lease_away() -> None:
    story = leader().after(1).tell(Resign())
    assert story.verdict == Resigned()
    assert not may_start(story.election, story.now)
    assert not has_resigned(story.election)
    assert story.asked() == Patch(
        TARGET,
        {
            "metadata": {"resourceVersion": "2"},
            "spec": {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "renewTime": "2026-01-01T00:00:01.000000Z",
                "acquireTime": "2026-01-01T00:00:01.000000Z",
            },
        },
    )
    story.answer()
    assert has_resigned(story.election)
    assert story.wake is None
    assert story.lines()[-1] == "lease default/operator is released"
    assert story.lease is not None
    assert story.lease["leaseTransitions"] == 5


def test_who_stands_by_resigns_at_once() -> None:
    story = standby().tell(Resign())
    assert has_resigned(story.election)
    assert (story.asked(), story.wake) == (None, None)
    assert has_resigned(Story().tell(Resign()).election)


def test_a_renewal_under_way_is_waited_for_first() -> None:
    story = leader().after(2).tell(Resign())
    assert story.spec()["holderIdentity"] == "me"
    story.answer()
    assert story.spec()["holderIdentity"] == ""


def test_a_claim_under_way_is_given_back() -> None:
    story = Story(held("")).begin().answer().tell(Resign())
    assert not has_resigned(story.election)
    story.answer()
    assert story.spec()["holderIdentity"] == ""
    story.answer()
    assert has_resigned(story.election)


@pytest.mark.parametrize("outcome", [Unreachable("no network"), Refused(500, "no")])
def test_a_release_is_tried_again(outcome: Outcome) -> None:
    story = leader().tell(Resign()).answer(outcome)
    assert not has_resigned(story.election)
    story.after(2).answer()
    assert has_resigned(story.election)


def test_a_release_of_a_lease_that_has_changed_looks_whose_it_is() -> None:
    story = leader()
    story.version += 1
    story.tell(Resign()).answer().answer()
    assert story.spec()["holderIdentity"] == ""
    story.write(**held("other")).answer().answer()
    assert has_resigned(story.election)
    story = leader().tell(Resign()).answer(Missing("not found"))
    assert has_resigned(story.election)


def test_facts_of_strangers_are_let_be() -> None:
    story = leader()
    before = story.election
    story.tell(Answered(99, Missing("?"))).tell(AlarmRang())
    assert story.election == before
