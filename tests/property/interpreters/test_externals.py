"""Models of external systems are values: forks are apart, digests are complete."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings, strategies as st

from fnop.interpreters.simulation.externals import externals_of, forked
from fnop.testing import External, JobService, PostService, PutService
from tests.thorough import examples

_FEW = st.sampled_from("abc")
_BODIES = st.one_of(st.none(), st.integers(0, 2), st.lists(_FEW, max_size=2))

# A call is a verb, a text and a body; ids are chosen among those that there are.
Call = tuple[str, str, Any]
CALLS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "put",
                "forget",
                "post",
                "tokened",
                "remove",
                "refer",
                "submit",
                "cancel",
                "wait",
                "down",
            ]
        ),
        _FEW,
        _BODIES,
    ),
    max_size=12,
)


class World:
    """One of each service, and calls to them by a table of verbs."""

    def __init__(self) -> None:
        puts, posts, jobs = PutService(), PostService(lag=5), JobService()
        self.calls: dict[Any, Any] = {
            "put": puts.put,
            "forget": puts.delete,
            "post": posts.create,
            "delete": posts.delete,
            "list": posts.list,
            "submit": jobs.submit,
            "cancel": jobs.cancel,
            "poll": jobs.poll,
            "jobs": jobs.jobs,
        }

    def fork(self) -> World:
        made = World()
        made.calls = forked(self.calls)
        return made

    @property
    def models(self) -> list[External]:
        return externals_of(self.calls)

    @property
    def looks(self) -> list[Any]:
        return [(each.digest(), each.creations(), each.now) for each in self.models]

    def perform(self, call: Call) -> Any:
        verb, text, body = call
        do = self.calls
        with suppress(LookupError, ValueError, ConnectionError):
            ids = [each["id"] for each in do["list"]()]
            match verb:
                case "put" | "submit":
                    return do[verb](text, body) if verb == "put" else do[verb](body)
                case "forget":
                    return do["forget"](text)
                case "post":
                    return do["post"](body, tags={"owner": text})
                case "tokened":
                    return do["post"](text, token=text)
                case "remove" if ids:
                    return do["delete"](ids[0])
                case "refer" if ids:
                    return do["post"]({"to": ids[-1]}, tags={"owner": text})
                case "cancel":
                    return [do["cancel"](id) for id in do["jobs"]()[:1]]
                case "wait":
                    for each in self.models:
                        each.now += 4
                case "down":
                    self.models[0].down = not self.models[0].down
                case _:
                    pass
        return [do["poll"](id) for id in do["jobs"]()]


@given(CALLS, CALLS, CALLS)
@settings(max_examples=examples(100))
def test_what_happens_to_a_fork_does_not_happen_to_the_other(
    before: list[Call], here: list[Call], there: list[Call]
) -> None:
    world = World()
    for call in before:
        world.perform(call)
    fork, witness = world.fork(), world.fork()
    looks = world.looks
    assert fork.looks == looks
    answers = [fork.perform(call) for call in there]
    assert world.looks == looks
    assert [witness.perform(call) for call in there] == answers
    assert witness.looks == fork.looks
    looks = fork.looks
    for call in here:
        world.perform(call)
    assert fork.looks == looks


@given(
    st.permutations("abc"), st.permutations("abc"), st.sampled_from(["tag", "token"])
)
def test_the_order_of_creation_is_not_in_the_digest(
    first: list[str], second: list[str], by: str
) -> None:
    """If a tag or a token identifies a thing, its id has no meaning."""
    looks = []
    for order in (first, second):
        cloud = PostService("net")
        ids = {}
        for each in order:
            marks: dict[str, Any] = (
                {"tags": {"a": each}} if by == "tag" else {"token": each}
            )
            ids[each] = cloud.create({"size": 1}, **marks)["id"]
        for each in order:
            cloud.update(ids[each], {"next": ids["a"]})
        looks.append((cloud.digest(), cloud.creations()))
    assert looks[0] == looks[1]
    assert "net-0" not in str(looks)


@given(CALLS, CALLS)
@settings(max_examples=examples(100))
def test_equal_digests_have_equal_futures(
    history: list[Call], future: list[Call]
) -> None:
    """A history, and the same with a thing that came and went in between."""
    one, other = World(), World()
    other.calls["delete"](other.calls["post"]("gone", token="gone")["id"])
    for call in history:
        one.perform(call)
        other.perform(call)
    assert digests(one) == digests(other)
    for call in future:
        one.perform(call)
        other.perform(call)
        assert digests(one) == digests(other)


def digests(world: World) -> list[Any]:
    return [each.digest() for each in world.models]
