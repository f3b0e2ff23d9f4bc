"""A child with a status, which an API server keeps apart from its manifest."""

import itertools
from typing import Any

import fnop

calls = itertools.count(1)


@fnop.reconcile("gardens.fnop.dev", owns="beds.fnop.dev")
def garden(**_: Any) -> fnop.Desired:
    bed = {
        "apiVersion": "fnop.dev/v1",
        "kind": "Bed",
        "metadata": {"name": "one"},
        "spec": {"soil": "clay"},
        "status": {"flowering": True},
    }
    return fnop.desired(bed, status={"calls": next(calls)}, again=0.2)
