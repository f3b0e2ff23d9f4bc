"""The request counters of the API server: writing requests, by resource."""

import re
from dataclasses import dataclass

from bench.workload import PLURAL

_SAMPLE = re.compile(
    r"^apiserver_request_(total|duration_seconds_sum)\{(.*)\} (\S+)$", re.MULTILINE
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITING = {"APPLY", "PATCH", "POST", "PUT"}  # no operator here deletes anything


@dataclass(frozen=True, slots=True)
class Writes:
    """Writing requests so far, with any answer."""

    objects: int  # the custom objects, their status included
    events: int
    seconds: float  # the sum of the server's times for those to the objects


def parse(text: str) -> Writes:
    """Read the counters from an answer to GET /metrics."""
    found = {
        (measure, resource): 0.0
        for measure in ("total", "duration_seconds_sum")
        for resource in (PLURAL, "events")
    }
    for measure, labels, value in _SAMPLE.findall(text):
        label = dict(_LABEL.findall(labels))
        counter = measure, label["resource"]
        if label["verb"] in _WRITING and counter in found:
            found[counter] += float(value)
    return Writes(
        objects=int(found["total", PLURAL]),
        events=int(found["total", "events"]),
        seconds=found["duration_seconds_sum", PLURAL],
    )
