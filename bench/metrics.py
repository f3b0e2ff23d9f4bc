"""The request counters of the API server: writing requests, by resource.

ConfigMaps are the children of objects: no other client here writes any.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from bench.workload import PLURAL

_SAMPLE = re.compile(
    r"^apiserver_request_(total|duration_seconds_sum)\{(.*)\} (\S+)$", re.MULTILINE
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITING = {"APPLY", "PATCH", "POST", "PUT"}  # no operator here deletes anything
_OBJECTS = (PLURAL, "configmaps")


@dataclass(frozen=True, slots=True)
class Writes:
    """Writing requests so far, with any answer."""

    objects: int  # the custom objects, their status included, and their children
    events: int
    seconds: float  # the sum of the server's times for those to the objects


def parse(text: str) -> Writes:
    """Read the counters from an answer to GET /metrics."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for measure, labels, value in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        if label["verb"] in _WRITING:
            sort = "objects" if label["resource"] in _OBJECTS else label["resource"]
            found[measure, sort] += float(value)
    return Writes(
        objects=int(found["total", "objects"]),
        events=int(found["total", "events"]),
        seconds=found["duration_seconds_sum", "objects"],
    )
