"""What the API server counts: requests that write, by what they write to."""

import re
from dataclasses import dataclass

from bench.workload import PLURAL

_COUNT = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITING = {"APPLY", "PATCH", "POST", "PUT"}  # no operator here deletes anything


@dataclass(frozen=True, slots=True)
class Writes:
    """Writing requests so far, whatever was answered to them."""

    objects: int  # the custom objects, their status included
    events: int


def parse(text: str) -> Writes:
    """Read the counters from an answer to GET /metrics."""
    written = {PLURAL: 0, "events": 0}
    for labels, count in _COUNT.findall(text):
        label = dict(_LABEL.findall(labels))
        if label["verb"] in _WRITING and label["resource"] in written:
            written[label["resource"]] += int(float(count))
    return Writes(objects=written[PLURAL], events=written["events"])
