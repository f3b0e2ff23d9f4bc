"""Stories: the operator in a cluster on virtual time."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import example

from fnop.testing import Simulation

HERE = Path(__file__).parent


def simulation(**options: Any) -> Simulation:
    return Simulation(example, crds=HERE / "object.yaml", **options).settle()


def requested(sim: Simulation) -> str:
    volume = sim.get("pvc/example-1-data")
    assert volume is not None
    return str(volume.spec["resources"]["requests"]["storage"])


def test_a_volume_comes_and_grows_and_goes() -> None:
    sim = simulation()
    assert requested(sim) == "2Gi"
    assert [each["reason"] for each in sim.events("fex/example-1")] == ["Claimed"]

    # The volume's part is played by the test: nothing provisions it here.
    sim.edit("fex/example-1", spec={"size": "3Gi"}).wait(25)
    assert requested(sim) == "2Gi"
    sim.edit("pvc/example-1-data", status={"phase": "Bound"}).settle()
    assert requested(sim) == "3Gi"

    sim.delete("fex/example-1").settle()
    assert sim.objects("fnopexamples") == sim.objects("pvc") == []
    assert sim.errors == []
    assert sim.elapsed < timedelta(minutes=1)


def test_a_secret_is_waited_for_also_by_the_next_process() -> None:
    sim = simulation()
    late = {"metadata": {"name": "late"}, "spec": {"size": "1Gi", "secret": "key"}}
    sim.apply({"apiVersion": "fnop.dev/v1", "kind": "FnopExample", **late}).wait(60)
    assert sim.get("pvc/late-data") is None

    sim.restart()
    sim.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})
    sim.settle()
    assert sim.get("pvc/late-data") is not None


def test_what_is_archived_stays_until_the_archive_answers() -> None:
    asked = []

    def busy_at_first(volume: str, token: str) -> str:
        asked.append((volume, token))
        if len(asked) == 1:
            raise ConnectionError("the archive is busy")
        return "shelf 7"

    sim = simulation(calls={example.archive: busy_at_first})
    sim.edit("fex/example-1", spec={"archived": True}).settle()
    sim.delete("fex/example-1").wait(0.5)
    assert sim.get("fex/example-1") is not None
    sim.settle()
    assert sim.get("fex/example-1") is None
    assert len(asked) == len({*asked}) + 1, "both times with the same token"
    assert "example-1 is kept at shelf 7" in sim.log
