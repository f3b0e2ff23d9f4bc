"""Turn the evidence into the story: `explain` is pure, and never raises."""

from __future__ import annotations

from fnop.core.values.body import Body
from fnop.effects.structs import replace
from fnop.interpreters.explain.advice import advice_for
from fnop.interpreters.explain.facts import Evidence
from fnop.interpreters.explain.state import state_of, with_condition
from fnop.interpreters.explain.story import Story
from fnop.interpreters.explain.surroundings import (
    child_of,
    conditions_of,
    events_of,
    operator_of,
    subject_of,
    writers_of,
)

__all__ = ["explain"]


def explain(evidence: Evidence) -> Story:
    """The story of an object, with the diagnosis.

    >>> from fnop.core.api.resources import Resource
    >>> from fnop.core.handlers.declare.settings import Settings
    >>> things = Resource("e.com", "v1", "things", "Thing")
    >>> told = explain(Evidence(things, {"metadata": {"name": "x"}}, 0.0, Settings()))
    >>> told.subject.name, told.advice[0].about
    ('x', 'unmarked')
    """
    body = Body(dict(evidence.body))
    conditions = conditions_of(evidence, body)
    own = next((each for each in conditions if each.own), None)
    story = Story(
        evidence.wall,
        subject_of(evidence, body),
        operator_of(evidence, body),
        with_condition(state_of(evidence, body), own),
        conditions,
        tuple(child_of(evidence, each) for each in evidence.children),
        events_of(evidence, body),
        writers_of(body),
        evidence.handlers,
        evidence.recorded,
        evidence.unread,
        (),
        evidence.requested,
    )
    return replace(story, advice=advice_for(story))
