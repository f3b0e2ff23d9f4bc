"""Two handlers of logs, which write down their lines and the delays."""

import os
import time as clock
from datetime import datetime
from re import Match
from typing import Any

import fnop

# A line each: the sort, the pod, its number, and the times of writing and handling.
OUT = open(os.environ["BENCH_LOGS_OUT"], "w", buffering=1)  # noqa: SIM115


@fnop.on.log("pods", regex=r"^wanted (\d+)", since="start")
def wanted(match: Match[str], name: str, time: datetime, **_: Any) -> None:
    OUT.write(f"wanted {name} {match[1]} {time.timestamp():.6f} {clock.time():.6f}\n")


@fnop.on.log(
    "pods",
    labels={"fails": fnop.PRESENT},
    multiline=True,
    regex=r"^Traceback .*\n(?:  .*\n)+KeyError: (\d+)$",
    since="start",
)
def failed(match: Match[str], name: str, time: datetime, **_: Any) -> None:
    OUT.write(f"failed {name} {match[1]} {time.timestamp():.6f} {clock.time():.6f}\n")
