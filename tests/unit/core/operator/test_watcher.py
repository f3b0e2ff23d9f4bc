"""Listing and watching: the step after each possible end of a stream."""

import pytest

from fnop.core.api.resources import Resource
from fnop.core.handlers.declare.settings import Settings
from fnop.core.seam.commands import ListPage, Watch
from fnop.core.seam.inputs import StreamEnded
from fnop.core.streams.stream import (
    Stream,
    StreamPhase,
    answered_version,
    ended,
    heard_at,
    listed,
    opened,
)
from fnop.core.values.backoff import BACKOFF_SECONDS
from fnop.core.values.body import is_behind
from fnop.core.values.now import Now
from fnop.effects.structs import replace

PODS = Resource("", "v1", "pods", "Pod")
SETTINGS = Settings()
LONG_AGO, AT = 1000.0, Now(5000.0, 2000.0)


def listing() -> Stream:
    stream, _ = opened(Stream(PODS, "ns"), 1, 7, Now(4000.0, LONG_AGO), SETTINGS)
    return stream


def watching(*, heard: bool = True, since: float = LONG_AGO) -> Stream:
    fresh = listed(listing(), "100")
    stream, _ = opened(fresh, 2, 8, Now(4000.0, since), SETTINGS)
    return heard_at(stream, "105") if heard else stream


def end(
    reason: str, status: int | None = None, advice: float | None = None
) -> StreamEnded:
    return StreamEnded(2, reason, status, "words", advice)


def watched_again(stream: Stream, number: int, now: Now = AT) -> Stream:
    """The stream when its watch is open again, on a server that has all versions."""
    stream, _ = opened(stream, number, 9, now, SETTINGS)
    if stream.is_asking:
        stream = answered_version(stream, stream.version or "")
    elif stream.phase is StreamPhase.LISTING:
        stream = listed(stream, "100")
    else:
        return stream
    stream, _ = opened(stream, number + 100, 9, now, SETTINGS)
    return stream


def broken(reason: str = "unreachable", *, heard: bool, after: float) -> list[float]:
    """The waits of a watch that breaks repeatedly, after a number of seconds."""
    stream, waits = watching(heard=heard, since=AT.mono - after), []
    for number in range(10):
        stream = ended(stream, end(reason, 410 if reason == "refused" else None), AT, 0)
        waits.append(stream.due - AT.mono)
        opening = Now(4000.0, AT.mono - after)
        stream = watched_again(stream, 20 + number, opening)
        if heard:
            stream = heard_at(stream, "105")
    return waits


# --------------------------------------------------------------------- opening


def test_without_a_version_a_stream_lists() -> None:
    stream, command = opened(Stream(PODS, "ns"), 1, 7, AT, SETTINGS)
    assert command == ListPage(1, PODS, "ns", SETTINGS.list_page_limit)
    assert (stream.phase, stream.id, stream.begun) == (StreamPhase.LISTING, 1, 7)


def test_with_a_version_it_watches_from_there() -> None:
    stream, command = opened(listed(listing(), "100"), 2, 8, AT, SETTINGS)
    assert isinstance(command, Watch)
    assert (command.stream, command.version) == (2, "100")
    assert command.silence_seconds > command.timeout_seconds
    assert (stream.phase, stream.lists) == (StreamPhase.WATCHING, 1)
    assert stream.begun == 7, "a watch is no listing"


def test_a_line_moves_the_version_from_which_it_resumes() -> None:
    stream = replace(watching(heard=False), instant_ends=2)
    assert stream.version == "100"
    stream = heard_at(stream, "101")
    assert (stream.version, stream.instant_ends) == ("101", 0)


# ---------------------------------------------------------------------- ending

# reason, HTTP status → whether it lists again, and whether it waits before.
WATCH_ENDS = [
    ("eof", None, False, False),
    ("silent", None, False, False),
    ("unreachable", None, False, True),
    ("undecodable", None, True, True),
    ("refused", None, False, True),  # an ERROR line that says nothing
    ("refused", 400, True, True),
    ("refused", 401, False, True),
    ("refused", 403, False, True),
    ("refused", 404, True, True),
    ("refused", 408, False, True),
    ("refused", 410, True, False),
    ("refused", 422, True, True),
    ("refused", 429, False, True),
    ("refused", 500, False, True),
    ("refused", 503, False, True),
    ("refused", 504, False, True),
]


@pytest.mark.parametrize(("reason", "status", "relists", "waits"), WATCH_ENDS)
def test_the_end_of_a_watch(
    reason: str, status: int | None, relists: bool, waits: bool
) -> None:
    after = ended(watching(), end(reason, status), AT, 0.0)
    assert after.phase is StreamPhase.WAITING
    assert after.version == (None if relists else "105")
    assert after.due == AT.mono + (BACKOFF_SECONDS[0] if waits else 0.0)
    _, command = opened(after, 3, 9, AT, SETTINGS)
    if reason == "unreachable" or status in (500, 503, 504):
        assert command == ListPage(3, PODS, "ns", 1), "how far is the server?"
    else:
        assert isinstance(command, ListPage if relists else Watch)


@pytest.mark.parametrize("status", [None, 403, 404, 500])
@pytest.mark.parametrize("reason", ["refused", "unreachable", "undecodable"])
def test_who_gets_no_answer_asks_again_and_loses_no_version(
    reason: str, status: int | None
) -> None:
    stream = ended(watching(), end("unreachable"), AT, 0.0)
    for number in range(20):
        stream, command = opened(stream, 3 + number, 9, AT, SETTINGS)
        assert isinstance(command, ListPage)
        assert command.limit == 1
        stream = ended(stream, end(reason, status), AT, 0.0)
    assert stream.version == "105"
    assert stream.due == AT.mono + 5.0


@pytest.mark.parametrize(
    ("version", "resumes"),
    [("105", True), ("106", True), ("1000", True), ("104", False), ("99", False)],
)
def test_where_the_server_has_gone_back_it_lists_anew(
    version: str, resumes: bool
) -> None:
    stream = ended(watching(), end("unreachable"), AT, 0.0)
    asking, _ = opened(stream, 3, 9, AT, SETTINGS)
    after, command = opened(answered_version(asking, version), 4, 9, AT, SETTINGS)
    if resumes:
        assert isinstance(command, Watch)
        assert command.version == "105"
    else:
        assert command == ListPage(4, PODS, "ns", SETTINGS.list_page_limit)
    assert not after.doubted


@pytest.mark.parametrize("version", ["", "0x5", "a"])
def test_of_versions_that_are_no_numbers_nothing_is_concluded(version: str) -> None:
    assert not is_behind(version, "105")
    assert not is_behind("4", version or None)


@pytest.mark.parametrize("status", [None, 401, 403, 404, 410, 500])
@pytest.mark.parametrize("reason", ["refused", "unreachable", "undecodable"])
def test_a_listing_that_breaks_is_begun_anew(reason: str, status: int | None) -> None:
    after = ended(listing(), end(reason, status), AT, 0.0)
    assert after.phase is StreamPhase.WAITING
    assert after.version is None
    assert after.lists == 0
    # 410: the continue token has expired, and a fresh listing is all it needs.
    assert after.due == AT.mono + (0.0 if status == 410 else BACKOFF_SECONDS[0])


@pytest.mark.parametrize("reason", ["refused", "unreachable", "undecodable"])
def test_failures_in_a_row_wait_longer_and_longer(reason: str) -> None:
    stream, waits = listing(), []
    for number in range(8):
        stream = ended(stream, end(reason, 500), AT, 0.0)
        waits.append(stream.due - AT.mono)
        stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)
    assert waits == [0.5, 1.0, 2.0, 3.0, 5.0, 5.0, 5.0, 5.0]


@pytest.mark.parametrize("status", [401, 429, 503, None])
def test_a_server_that_is_back_is_found_in_time(status: int | None) -> None:
    """However long it was away: the longest wait leaves time to list, and to handle."""
    stream = listing()
    for number in range(1000):
        stream = ended(stream, end("refused", status), AT, 1.0)
        assert stream.due - AT.mono <= 6.0
        stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)


def test_jitter_spreads_the_tries() -> None:
    waits = [
        ended(listing(), end("unreachable"), AT, jitter).due - AT.mono
        for jitter in (0.0, 0.5, 1.0)
    ]
    assert waits == sorted(set(waits))


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_kept_until_a_listing_succeeds(status: int) -> None:
    after = ended(listing(), end("refused", status), AT, 0.0)
    assert after.refusal == "words"
    again, _ = opened(after, 3, 9, AT, SETTINGS)
    assert listed(again, "1").refusal is None


def test_a_listing_that_succeeds_is_watched_at_once() -> None:
    broken = ended(listing(), end("unreachable"), AT, 0.0)
    again, _ = opened(broken, 3, 9, AT, SETTINGS)
    fine = listed(again, "100")
    assert (fine.due, fine.lists) == (0.0, 1)


@pytest.mark.parametrize("heard", [True, False])
def test_a_watch_that_stood_for_a_while_forgets_the_failures_before(
    heard: bool,
) -> None:
    assert broken(heard=heard, after=10.0) == [0.5] * 10


@pytest.mark.parametrize("heard", [True, False])
def test_a_watch_that_breaks_off_soon_forgets_none_whatever_it_said(
    heard: bool,
) -> None:
    """A line at which a proxy or a server stumbles is met again at each try."""
    assert broken(heard=heard, after=2.0)[:7] == [0.5, 1.0, 2.0, 3.0, 5.0, 5.0, 5.0]


def test_advice_to_come_later_is_heeded() -> None:
    for stream in (watching(), listing()):
        after = ended(stream, end("refused", 429, 7.0), AT, 0.0)
        assert after.due == AT.mono + 7.0


def test_advice_to_come_earlier_than_others_is_not() -> None:
    stream = replace(watching(), failures=5, opened_at=AT.mono)
    assert ended(stream, end("refused", 429, 1.0), AT, 0.0).due == AT.mono + 5.0


def test_advice_to_come_next_week_is_not_either() -> None:
    after = ended(watching(), end("refused", 503, 604_800.0), AT, 0.0)
    assert after.due == AT.mono + 300.0


# ----------------------------------------------- R31: when is a version of no use?


def test_r31_idle_watches_that_end_are_resumed_for_ever() -> None:
    """An idle kind ends every few minutes without a line: that is its usual life."""
    stream = watching(heard=False)
    for number in range(10):
        stream = ended(stream, end("eof"), AT, 0.0)
        assert stream.version == "100"
        assert stream.due == AT.mono
        stream, _ = opened(stream, 3 + number, 9, Now(4000.0, LONG_AGO), SETTINGS)


def test_r31_three_instant_ends_in_a_row_list_anew() -> None:
    stream, versions, waits = watching(heard=False, since=AT.mono), [], []
    for number in range(3):
        stream = ended(stream, end("eof"), AT, 0.0)
        versions.append(stream.version)
        waits.append(stream.due - AT.mono)
        if stream.version is not None:
            stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)
    assert versions == ["100", "100", None]
    assert waits == list(BACKOFF_SECONDS[:3]), "an instant end is answered by waiting"


def test_r31_a_line_between_instant_ends_begins_the_count_anew() -> None:
    stream = watching(heard=False, since=AT.mono)
    for number in range(6):
        stream = ended(stream, end("eof"), AT, 0.0)
        assert stream.version is not None
        stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)
        if number % 2:
            stream = heard_at(stream, "106")


def test_r31_silence_means_reconnect_and_not_broken() -> None:
    stream = watching()
    for number in range(10):
        stream = ended(stream, end("silent"), AT, 0.0)
        assert (stream.version, stream.failures) == ("105", 0)
        stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)


def test_r31_fresh_versions_that_are_always_gone_are_not_listed_without_end() -> None:
    """A server that says 410 to each version of its own is not asked in a loop."""
    stream, waits = watching(heard=False), []
    for number in range(4):
        stream = ended(stream, end("refused", 410), AT, 0.0)
        waits.append(stream.due - AT.mono)
        stream, _ = opened(stream, 10 + number, 9, AT, SETTINGS)
        assert stream.phase is StreamPhase.LISTING
        stream, _ = opened(listed(stream, "100"), 20 + number, 9, AT, SETTINGS)
    assert waits[0] == 0.0, "the first time it is an ordinary expiry"
    assert all(wait > 0 for wait in waits[1:]), waits


def test_410_behind_a_line_is_not_listed_without_end() -> None:
    waits = broken("refused", heard=True, after=0.1)
    assert waits[0] == 0.0, "the first time it is an ordinary expiry"
    assert waits[1:5] == [1.0, 2.0, 3.0, 5.0]


def test_410_after_an_outage_is_an_ordinary_expiry() -> None:
    """A restarted server knows few versions: that does not require another wait."""
    stream = watching()
    for number in range(5):
        stream = ended(stream, end("unreachable"), AT, 0.0)
        stream, _ = opened(stream, 3 + number, 9, AT, SETTINGS)
    stream = watched_again(stream, 20)
    stream = ended(stream, end("refused", 410), AT, 0.0)
    assert (stream.version, stream.due) == (None, AT.mono)


def test_410_now_and_then_is_an_ordinary_expiry() -> None:
    assert broken("refused", heard=True, after=60.0) == [0.0] * 10


@pytest.mark.parametrize(("status", "lists"), [(500, True), (503, False), (403, False)])
def test_a_version_that_is_refused_again_and_again_is_given_up(
    status: int, lists: bool
) -> None:
    """Not every server says 400 or 410 to a version that it cannot read."""
    stream = watching(heard=False, since=AT.mono)
    for number in range(5):
        assert stream.version == "100"
        stream = ended(stream, end("refused", status), AT, 0.0)
        if stream.version is not None:
            stream = watched_again(stream, 3 + number)
    assert (stream.version is None) == lists
