"""Single lines, and stories in the simulated cluster."""

from pathlib import Path
from typing import Any

import fnop
from fnop.testing import Off, Simulation, load, matches, plan_of

HERE = Path(__file__).parent
example = load(HERE / "example.py")

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 9, in load
KeyError: 'seven'"""


def pod(**annotations: str) -> dict[str, Any]:
    notes = {f"trainings.fnop.dev/{key}": each for key, each in annotations.items()}
    labels = {example.NAME: "digits"}
    return {"metadata": {"name": "digits-1", "labels": labels, "annotations": notes}}


def running() -> tuple[Simulation, str]:
    """The example's training, and the pod that its Job has made."""
    sim = Simulation(example, objects=HERE / "object.yaml").settle()
    (made,) = sim.objects("pods")
    return sim, f"pods/{made.name}"


def accuracy_in(sim: Simulation) -> Any:
    return sim["trainings/example-1"].status.get("accuracy")


def test_an_accuracy_and_its_mark_are_one_write() -> None:
    line = "epoch 3: accuracy is 0.91"
    plan = plan_of(example.accuracy, pod(), line=line, now=0)
    notes = {
        example.ACCURACY: "0.91",
        example.READ: "1970-01-01T00:00:00+00:00",
    }
    assert plan.effects == (fnop.patch(annotations=notes),)


def test_the_event_names_the_error() -> None:
    event, _ = plan_of(example.failed, pod(), line=TRACEBACK).effects
    assert event == fnop.warn("Failed", "KeyError: 'seven'")


def test_the_line_of_the_mark_is_reported_once() -> None:
    marked = pod(reported="1970-01-01T00:01:00+00:00")
    assert not matches(example.failed, marked, line=TRACEBACK, now=60)
    assert matches(example.failed, marked, line=TRACEBACK, now=61)
    assert not matches(example.failed, pod(), line="no Traceback", now=61)
    assert not matches(example.failed, pod(), line=TRACEBACK, container="proxy")


def test_the_status_tells_the_newest_accuracy() -> None:
    sim, place = running()
    assert accuracy_in(sim) == "0.86"
    (event,) = sim.events(place)
    assert event["message"] == "OSError: no space left"


def test_a_restart_loses_nothing_and_repeats_nothing() -> None:
    sim, place = running()
    sim.restart().settle()
    assert len(sim.events(place)) == 1


def test_the_accuracy_outlives_the_pod() -> None:
    sim, place = running()
    sim.delete(place).settle()
    assert place not in sim
    assert accuracy_in(sim) == "0.86"


def test_another_image_is_another_training() -> None:
    sim, place = running()
    silent = {"image": "training.example.org/letters", "annotations": None}
    sim.edit("trainings/example-1", spec=silent).settle()
    assert place not in sim
    assert accuracy_in(sim) is None


def test_lines_that_come_while_the_operator_is_down_are_read() -> None:
    sim = Simulation(example, objects=HERE / "object.yaml")
    sim.pace("job", Off()).settle()
    job = sim["jobs/example-1"]
    main = {"name": "main", "image": "training.example.org/digits"}
    by_hand = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [main]},
        **pod(),
    }
    by_hand["metadata"]["labels"] = {example.NAME: "example-1"}
    sim.apply(fnop.append_owner_reference(by_hand, job)).settle()
    sim.log_line("pods/digits-1", "accuracy is 0.1").settle()
    assert accuracy_in(sim) == "0.1"
    sim.log_line("pods/digits-1", f"accuracy is 0.2\n{TRACEBACK}\nends").restart()
    sim.settle()
    assert accuracy_in(sim) == "0.2"
    assert len(sim.events("pods/digits-1")) == 1
