"""Values that `json` accepts arrive on a real API server, with any class."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

import fnop
from fnop.core.handlers.declare.registry import Registry
from tests.cluster.envtest import ApiServer
from tests.cluster.operating import User
from tests.json_scenarios import GIVEN, KIND, Given, assert_arrived, writing
from tests.patience import eventually, patience
from tests.simulations import example


def test_what_a_handler_writes_arrives(apiserver: ApiServer, namespace: str) -> None:
    user = User(apiserver, namespace)
    user.define()
    values: dict[str, Given] = {}
    ready, stop = threading.Event(), threading.Event()
    options: dict[str, Any] = {
        "registry": writing(values, Registry()),
        "settings": fnop.Settings("json", (namespace,)),
        "kubeconfig": str(apiserver.kubeconfig),
        "ready_flag": ready,
        "stop_flag": stop,
    }
    numbers = itertools.count()

    @seed(1)
    @settings(
        max_examples=4,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(GIVEN, min_size=5, max_size=5))
    def play(several: list[Given]) -> None:
        names = {f"json-{next(numbers)}": each for each in several}
        values.update(names)
        for name in names:
            user.create(example(name))
        for name, each in names.items():

            def ends(name: str = name) -> bool:
                status = (user.get(KIND, name) or {}).get("status") or {}
                return "written" in status or bool(status.get("conditions"))

            eventually(ends)
            assert_arrived(each, lambda name: user.get(KIND, name), name)

    thread = threading.Thread(target=fnop.run, kwargs=options)
    thread.start()
    try:
        assert ready.wait(patience(20))
        play()
    finally:
        stop.set()
        thread.join(patience(10))
