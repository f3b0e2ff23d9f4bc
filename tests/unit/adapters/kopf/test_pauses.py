"""Kopf's log lines about pauses in favour of other operators."""

from __future__ import annotations

import doctest

import pytest

from fnop.adapters.kopf.running import pauses as module
from fnop.adapters.kopf.running.pauses import Pauses
from fnop.core.peers.freezing import Frozen, PeeringVerdict, Serving, Why
from fnop.core.peers.peers import Peer

OUTRANKED = Frozen(Why.OUTRANKED, (Peer("dev", 666, lastseen=0.0),))
LATER = Frozen(Why.OUTRANKED, (Peer("dev", 666, lastseen=9.0),))
OTHER = Frozen(Why.OUTRANKED, (Peer("eve", 7, lastseen=0.0),))
PAUSING, RESUMING = "Pausing", "Resuming"


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert found.failed == 0


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        ([None, None], []),
        ([None, Frozen(Why.JOINING), Serving()], []),
        ([Frozen(Why.JOINING), OUTRANKED, OUTRANKED, LATER], [PAUSING]),
        ([OUTRANKED, OTHER, Serving(), Serving()], [PAUSING, RESUMING]),
        ([OUTRANKED, Serving(), OTHER], [PAUSING, RESUMING, PAUSING]),
        # fnop itself warns of this pause.
        ([Serving(), Frozen(Why.TIED), Serving()], [RESUMING]),
        ([OUTRANKED, Frozen(Why.LEFT)], [PAUSING]),
    ],
    ids=["alone", "begins", "outranked", "by another", "again", "tied", "ends"],
)
def test_pauses_are_logged_once(
    verdicts: list[PeeringVerdict | None],
    wanted: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    pauses = Pauses()
    for each in verdicts:
        pauses.see(each)
    assert [each.partition(" ")[0] for each in caplog.messages] == wanted


def test_an_operator_with_a_mandatory_peering_begins_paused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    pauses = Pauses()
    for each in (None, Frozen(Why.JOINING), OUTRANKED, Serving(), OUTRANKED):
        pauses.see(each, mandatory=True)
    assert [each.partition(" ")[0] for each in caplog.messages] == [RESUMING, PAUSING]


def test_a_pause_names_the_peers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    Pauses().see(OUTRANKED)
    (line,) = caplog.messages
    peer = "<Peer dev: priority=666, lifetime=60, lastseen='1970-01-01T00:00:00+00:00'>"
    assert line == f"Pausing operations in favour of [{peer}]."
