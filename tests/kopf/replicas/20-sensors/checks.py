"""The operator's own tests: it runs in the test's process, on the test's cluster."""

import os
import pathlib
import time

import kopf
import pykube
import pytest
from kopf.testing import KopfRunner

FILE = str(pathlib.Path(__file__).with_name("operator.py"))
ARGUMENTS = ["run", "--standalone", "--verbose", "-n", os.environ["REPLICA_NAMESPACE"]]


class Sensor(pykube.objects.NamespacedAPIObject):
    version, endpoint, kind = "replicas.fnop.dev/v1", "sensors", "Sensor"


@pytest.fixture(name="sensor")
def sensor_of_test():
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    body = {
        "apiVersion": "replicas.fnop.dev/v1",
        "kind": "Sensor",
        "metadata": {"name": "test", "namespace": os.environ["REPLICA_NAMESPACE"]},
        "spec": {"place": "lab", "every": 0.1, "limit": 1, "probes": ["heat"]},
    }
    sensor = Sensor(api, body)
    sensor.create()
    yield sensor
    assert not sensor.exists()


def until(holds, seconds=20):
    deadline = time.perf_counter() + seconds
    while not holds():
        assert time.perf_counter() < deadline
        time.sleep(0.1)


def test_a_sensor_is_read(sensor):
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True

    def is_counted():
        sensor.reload()
        return "full" in sensor.annotations

    with KopfRunner([*ARGUMENTS, FILE], settings=settings, timeout=30) as runner:
        until(is_counted)
        sensor.delete()
        until(lambda: not sensor.exists())
    assert runner.exit_code == 0
    assert runner.exception is None
    assert "heat is fine" in runner.output
    assert "removed, retry 1" in runner.output
    assert sensor.obj["status"]["samples"] == 1


def test_an_unknown_option_is_refused():
    with KopfRunner(["run", "--no-such-option"], reraise=False, timeout=30) as runner:
        pass
    assert runner.exit_code == 2
    assert "No such option" in runner.output


def test_errors_are_raised():
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
    def broken(**_):
        raise ValueError("no start")

    with (
        pytest.raises(Exception, match="failed"),
        KopfRunner(ARGUMENTS, registry=registry, timeout=30) as runner,
    ):
        until(lambda: runner.future.done())
