"""Typed fields read the durations that the API server accepts, and no others."""

from hypothesis import given, strategies as st

from fnop.core.kubernetes.durations import duration
from fnop.interpreters.cluster.schema.rules import FORMATS
from tests.conformance.cases import CASES

_TEXTS = st.text("0123456789.hmsdwnuµ yrMP-+\n")


def is_read(text: str) -> bool:
    try:
        duration(text)
    except ValueError:
        return False
    return True


def test_what_real_servers_accept_is_read() -> None:
    (case,) = (each for each in CASES if each.name == "crds: durations")
    told = {each.body["spec"]["span"]: each.code == 201 for each in case.steps}
    assert {text: is_read(text) for text in told} == told


@given(_TEXTS)
def test_the_simulated_server_accepts_the_same(text: str) -> None:
    assert FORMATS["duration"](text) is is_read(text)
