"""The logs of pods: written by containers, read and followed by clients."""

from __future__ import annotations

from typing import Any

import pytest

from fnop.interpreters.cluster import (
    Cluster,
    LogFollowed,
    Off,
    Pace,
    answer,
    due,
    empty_cluster,
    is_log_follow,
    log_followed,
    log_more,
    logged,
    paced,
    tick,
    upgraded,
)
from fnop.interpreters.cluster.storage.logs import LINES_MAX
from fnop.interpreters.runtime.protocol import (
    MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    User,
)

START = 1_700_000_000.0  # 2023-11-14T22:13:20Z
PODS = "/api/v1/namespaces/default/pods"
LOG = f"{PODS}/p/log"
NOTE = "simulated.fnop.dev/log"


def pod(
    *containers: str, inits: tuple[dict[str, Any], ...] = (), **notes: str
) -> dict[str, Any]:
    named = {
        f"simulated.fnop.dev/{name.replace('__', '.').replace('_', '-')}": value
        for name, value in notes.items()
    }
    spec: dict[str, Any] = {
        "containers": [{"name": each, "image": "i"} for each in containers or ("c",)]
    }
    if inits:
        spec["initContainers"] = [*inits]
    return {"metadata": {"name": "p", "annotations": named}, "spec": spec}


class World:
    """A cluster with one pod, and its clock."""

    def __init__(self, body: dict[str, Any] | None = None, **paces: Pace) -> None:
        self.cluster: Cluster = paced(empty_cluster(now=START), paces)
        self.now = START
        if body is not None:
            self.send("POST", PODS, body)
            self.settle()

    def send(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        request = ApiRequest(method, path, tuple(query.items()), body, kind)
        self.cluster, response, _ = answer(self.cluster, request, self.now)
        assert response.status < 400, response
        return response.body

    def settle(self, seconds: float = 0.0) -> None:
        """Let everything happen that happens within this number of seconds."""
        end = self.now + seconds
        for _ in range(500):
            self.cluster, events = tick(self.cluster, self.now)
            if events or self.cluster.agenda:
                continue
            planned = due(self.cluster)
            if planned is None or planned > end:
                self.now = end
                return
            self.now = max(self.now, planned)
        raise AssertionError("it does not settle")

    def note(self, text: str | None, name: str = NOTE) -> None:
        self.send("PATCH", f"{PODS}/p", {"metadata": {"annotations": {name: text}}})
        self.settle()

    def status(self, status: dict[str, Any]) -> None:
        self.send("PATCH", f"{PODS}/p/status", {"status": status})

    def write(self, text: str, container: str | None = None) -> None:
        self.cluster = logged(self.cluster, "default", "p", container, text, self.now)

    def read(self, **query: str) -> ApiResponse:
        request = ApiRequest("GET", LOG, tuple(query.items()))
        return answer(self.cluster, request, self.now)[1]

    def log(self, **query: str) -> str:
        response = self.read(**query)
        assert response.status == 200, response
        text: str = response.body
        return text

    def refusal(self, **query: str) -> tuple[int, str]:
        response = self.read(**query)
        return response.status, response.body["message"]

    def containers(self, group: str = "containerStatuses") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.send("GET", f"{PODS}/p")["status"][group]
        return found

    def follow(self, **query: str) -> LogFollowed | ApiResponse:
        pairs = tuple({"follow": "true", **query}.items())
        return log_followed(self.cluster, ApiRequest("GET", LOG, pairs), self.now)


class Reader:
    """A reader that follows the log of the pod."""

    def __init__(self, world: World, **query: str) -> None:
        found = world.follow(**query)
        assert isinstance(found, LogFollowed), found
        self.world, self.followed = world, found

    def more(self) -> tuple[str, bool]:
        text, self.followed, is_over = log_more(self.world.cluster, self.followed)
        return text, is_over


# ---------------------------------------------------------------------- writing


def test_lines_get_times_of_their_own() -> None:
    world = World(pod())
    world.now += 0.5
    world.write("one\ntwo")
    world.write("three\n")
    assert world.log() == "one\ntwo\nthree\n"
    assert world.log(timestamps="true").splitlines() == [
        "2023-11-14T22:13:20.500000000Z one",
        "2023-11-14T22:13:20.500001000Z two",
        "2023-11-14T22:13:20.500002000Z three",
    ]


def test_nothing_is_written_by_no_text() -> None:
    world = World(pod())
    before = world.cluster
    world.write("")
    assert world.log() == ""
    assert before.version == world.cluster.version
    world.write("\n")
    assert world.log() == "\n"


def test_other_line_breaks_are_characters_of_a_line() -> None:
    world = World(pod())
    world.write("a\rb\u2028c\x0bd\nlast")
    assert world.log(tailLines="1") == "last\n"
    assert world.log(tailLines="2") == "a\rb\u2028c\x0bd\nlast\n"


DEFAULT = "kubectl.kubernetes.io/default-container"


def test_a_container_is_named_or_the_default_one() -> None:
    body = pod("c", "d")
    world = World(body)
    with pytest.raises(
        ValueError, match=r"pod default/p has several containers; .*'d'"
    ):
        world.write("text")
    world.note("d", DEFAULT)
    world.write("by default")
    world.write("by name", "c")
    assert world.log(container="d") == "by default\n"
    assert world.log(container="c") == "by name\n"
    # The server knows nothing of kubectl's default.
    status, message = world.refusal()
    assert (status, "a container name must be specified" in message) == (400, True)


@pytest.mark.parametrize(
    ("namespace", "name", "container", "problem"),
    [
        ("default", "q", None, "there is no pod q in the namespace default"),
        ("other", "p", None, "there is no pod p in the namespace other"),
        ("default", "p", "x", r"the pod default/p has no container x; it has \['c'\]"),
    ],
)
def test_only_containers_that_exist_write(
    namespace: str, name: str, container: str | None, problem: str
) -> None:
    world = World(pod())
    with pytest.raises(ValueError, match=f"^{problem}$"):
        logged(world.cluster, namespace, name, container, "text", START)


def test_a_default_container_that_does_not_exist_writes_nothing() -> None:
    world = World(pod("c", "d"))
    world.note("x", DEFAULT)
    with pytest.raises(ValueError, match="no container x"):
        world.write("text")


STATES: list[tuple[dict[str, Any] | None, str]] = [
    (None, "has not started"),
    ({}, "has not started"),
    ({"waiting": {"reason": "ContainerCreating"}}, "has not started"),
    ({"terminated": {"exitCode": 0}}, "has terminated"),
]


@pytest.mark.parametrize(("state", "problem"), STATES)
def test_only_running_containers_write(
    state: dict[str, Any] | None, problem: str
) -> None:
    world = World(pod(), kubelet=Off())
    if state is not None:
        world.status({"containerStatuses": [container("c", state)]})
    with pytest.raises(ValueError, match=f"container c of the pod default/p {problem}"):
        world.write("text")


def container(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {"name": name, "state": state, **base, **more}


def test_a_full_log_loses_its_older_half() -> None:
    world = World(pod())
    world.write("".join(f"{number}\n" for number in range(LINES_MAX)))
    reader = Reader(world, tailLines="0")
    assert world.log().startswith("0\n1\n")
    world.write("last")
    lines = world.log().splitlines()
    assert (len(lines), lines[0]) == (LINES_MAX // 2 + 1, str(LINES_MAX // 2))
    assert reader.more() == ("last\n", False)
    late = Reader(world, tailLines="1")
    world.write("x\n" * 3 * LINES_MAX)
    assert len(world.log().splitlines()) <= LINES_MAX
    assert set(late.more()[0].splitlines()) == {"x"}


def test_clusters_are_values_with_their_logs() -> None:
    world = World(pod())
    world.write("one")
    fork = world.cluster
    world.write("two")
    assert world.log() == "one\ntwo\n"
    world.cluster = fork
    world.write("other")
    assert world.log() == "one\nother\n"


def test_the_logs_of_a_removed_pod_are_dropped() -> None:
    world = World(pod())
    world.write("one")
    assert world.cluster.logs
    world.send("DELETE", f"{PODS}/p")
    world.settle()
    assert not world.cluster.logs
    world.send("POST", PODS, pod())
    world.settle()
    assert world.log() == ""


def test_a_write_of_an_object_keeps_the_logs() -> None:
    world = World(pod())
    world.write("one")
    world.send("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert world.log() == "one\n"


# ---------------------------------------------------------------------- options


def written_world() -> World:
    """A log of five lines, one each ten seconds; it is read at 22:14:05.25."""
    world = World(pod())
    for number in range(5):
        world.write(f"line {number}, \u00e9")
        world.now += 10
    world.now -= 4.75
    return world


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"container": "c"}, [0, 1, 2, 3, 4]),
        ({"follow": "true"}, [0, 1, 2, 3, 4]),
        ({"insecureSkipTLSVerifyBackend": "true"}, [0, 1, 2, 3, 4]),
        ({"tailLines": "2"}, [3, 4]),
        ({"tailLines": "0"}, []),
        ({"tailLines": "9"}, [0, 1, 2, 3, 4]),
        ({"sinceSeconds": "5"}, []),
        ({"sinceSeconds": "6"}, [4]),
        ({"sinceSeconds": "26"}, [2, 3, 4]),
        ({"sinceSeconds": "26", "tailLines": "1"}, [4]),
        ({"sinceSeconds": "6", "tailLines": "4"}, [4]),
        ({"sinceSeconds": "9" * 18}, [0, 1, 2, 3, 4]),
        ({"sinceTime": "2023-11-14T22:13:50Z"}, [3, 4]),
        ({"sinceTime": "2023-11-14T22:13:50.999999999Z"}, [3, 4]),  # truncated
        ({"sinceTime": "2023-11-14T22:13:51Z"}, [4]),
        ({"sinceTime": "2023-11-14T23:13:50+01:00"}, [3, 4]),
        ({"sinceTime": "2033-11-14T22:13:50Z"}, []),
        ({"sinceTime": ""}, [0, 1, 2, 3, 4]),
        ({"sinceTime": "null"}, [0, 1, 2, 3, 4]),
        ({"sinceTime": "0000-02-29T00:00:00Z"}, [0, 1, 2, 3, 4]),
        ({"previous": "false"}, [0, 1, 2, 3, 4]),
        ({"unknown": "x"}, [0, 1, 2, 3, 4]),
    ],
)
def test_lines_that_the_options_select(query: dict[str, str], shown: list[int]) -> None:
    expected = "".join(f"line {number}, \u00e9\n" for number in shown)
    assert written_world().log(**query) == expected


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"limitBytes": "1"}, "l"),
        ({"limitBytes": "8"}, "line 0, "),
        ({"limitBytes": "9"}, "line 0, "),  # half of a character
        ({"limitBytes": "10"}, "line 0, \u00e9"),
        ({"limitBytes": "12"}, "line 0, \u00e9\nl"),
        ({"limitBytes": "4", "tailLines": "1"}, "line"),
        (
            {"limitBytes": "33", "timestamps": "1", "sinceSeconds": "6"},
            "2023-11-14T22:14:00.000000000Z li",
        ),
    ],
)
def test_bytes_that_the_options_limit(query: dict[str, str], shown: str) -> None:
    assert written_world().log(**query) == shown


INVALID = 'PodLogOptions "p" is invalid: '
PARSING = "parsing time"
LAYOUT = '"2006-01-02T15:04:05Z07:00"'


# As kube-apiserver answers.
@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            {"tailLines": "-1"},
            422,
            f"{INVALID}tailLines: Invalid value: -1: must be greater than or equal "
            "to 0",
        ),
        (
            {"limitBytes": "0"},
            422,
            f"{INVALID}limitBytes: Invalid value: 0: must be greater than 0",
        ),
        (
            {"sinceSeconds": "0"},
            422,
            f"{INVALID}sinceSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            {"sinceSeconds": "1", "sinceTime": ""},
            422,
            f"{INVALID}[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may "
            "be specified",
        ),
        (
            {"tailLines": "-1", "limitBytes": "0", "sinceSeconds": "-5"},
            422,
            f"{INVALID}[tailLines: Invalid value: -1: must be greater than or equal to "
            "0, limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: "
            "Invalid value: -5: must be greater than 0]",
        ),
        (
            {"stream": "Stdout"},
            422,
            f"{INVALID}stream: Forbidden: may not be specified",
        ),
        ({"tailLines": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"tailLines": ""}, 400, 'strconv.ParseInt: parsing "": invalid syntax'),
        (
            {"limitBytes": "9223372036854775808"},
            400,
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
        ),
        (
            {"sinceTime": "x", "tailLines": "y"},
            400,
            f'{PARSING} "x" as {LAYOUT}: cannot parse "x" as "2006"',
        ),
        (
            {"sinceTime": "2020-01-01"},
            400,
            f'{PARSING} "2020-01-01" as {LAYOUT}: cannot parse "" as "T"',
        ),
        (
            {"sinceTime": "2020-01-01T00:00:00+0100"},
            400,
            f'{PARSING} "2020-01-01T00:00:00+0100" as {LAYOUT}: cannot parse "+0100" '
            'as "Z07:00"',
        ),
        (
            {"sinceTime": "2020-01-01T0:0:0Z"},
            400,
            f'{PARSING} "2020-01-01T0:0:0Z" as {LAYOUT}: cannot parse "0:0Z" as "04"',
        ),
        (
            {"sinceTime": "2020-13-01T00:00:00Z"},
            400,
            f'{PARSING} "2020-13-01T00:00:00Z": month out of range',
        ),
        (
            {"sinceTime": "2023-02-29T00:00:00Z"},
            400,
            f'{PARSING} "2023-02-29T00:00:00Z": day out of range',
        ),
        (
            {"sinceTime": "2020-01-01T24:00:00Z"},
            400,
            f'{PARSING} "2020-01-01T24:00:00Z": hour out of range',
        ),
        (
            {"sinceTime": "2020-01-01T00:00:00Zx"},
            400,
            f'{PARSING} "2020-01-01T00:00:00Zx": extra text: "x"',
        ),
        (
            {"sinceTime": "2020-01-01T00:00:00+25:00"},
            400,
            f'{PARSING} "2020-01-01T00:00:00+25:00": time zone offset hour out of '
            "range",
        ),
        ({"container": "x"}, 400, "container x is not valid for pod p"),
    ],
)
def test_options_that_are_refused(
    query: dict[str, str], code: int, message: str
) -> None:
    world = World(pod())
    assert world.refusal(**query) == (code, message)
    refused = world.follow(**query)
    assert isinstance(refused, ApiResponse)
    assert (refused.status, refused.body["message"]) == (code, message)


def test_options_are_checked_before_the_pod() -> None:
    world = World()
    assert world.refusal(tailLines="-1")[0] == 422
    assert world.refusal() == (404, 'pods "p" not found')


def test_streams_are_unknown_to_older_releases() -> None:
    world = written_world()
    world.cluster = upgraded(world.cluster, "1.31")
    assert world.log(stream="Stdout", tailLines="1") == "line 4, \u00e9\n"


def test_the_first_option_of_a_name_counts() -> None:
    world = written_world()
    twice = (("tailLines", "1"), ("tailLines", "2"))
    _, response, _ = answer(world.cluster, ApiRequest("GET", LOG, twice), world.now)
    assert response.body == "line 4, \u00e9\n"


# -------------------------------------------------------------------- instances


RUNNING = {"running": {"startedAt": "2023-11-14T22:13:20Z"}}
ENDED = {"terminated": {"exitCode": 1, "containerID": "stub://x"}}
CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}
STARTING = 'container "c" in pod "p" is waiting to start: '
NONE_BEFORE = 'previous terminated container "c" in pod "p" not found'


def crashing() -> World:
    """A container that writes its instance's number, and ends after a minute."""
    world = World(pod(run_for="1m", exit_code="1"))
    world.write("instance 0")
    return world


def test_the_log_of_an_instance_and_of_the_one_before() -> None:
    world = crashing()
    assert world.refusal(previous="true") == (400, NONE_BEFORE)
    world.settle(60)  # it ends
    assert "terminated" in world.containers()[0]["state"]
    assert world.log() == "instance 0\n"
    assert world.refusal(previous="true") == (400, NONE_BEFORE)
    for number in (1, 2, 3):
        world.settle(10 * 2 ** (number - 1))
        assert world.containers()[0]["restartCount"] == number
        assert world.log() == ""
        assert world.log(previous="true") == f"instance {number - 1}\n"
        world.write(f"instance {number}")
        assert world.log() == f"instance {number}\n"
        world.settle(60)
        assert world.log() == f"instance {number}\n"
        assert world.log(previous="true") == f"instance {number - 1}\n"
    (logs,) = world.cluster.logs.values()
    assert [each.restarts for each in logs["c"] if each] == [3, 2]


def test_the_log_of_a_container_that_waits_for_its_restart() -> None:
    world = crashing()
    world.settle(3600)
    (status,) = world.containers()
    assert status["state"] == CRASHED
    assert status["restartCount"] == 5
    assert "terminated" in status["lastState"]
    assert world.log() == world.log(previous="true") == ""  # of instance 5
    assert Reader(world).more() == ("", True)


@pytest.mark.parametrize(
    ("status", "query", "answered"),
    [
        (container("c", {"waiting": {"reason": "Odd"}}), {}, f"{STARTING}Odd"),
        (
            container("c", {"waiting": {"reason": "ErrImagePull"}}),
            {},
            f"{STARTING}image can't be pulled",
        ),
        (
            container("c", {"waiting": {"reason": "ImagePullBackOff"}}),
            {},
            f"{STARTING}trying and failing to pull image",
        ),
        (
            container("c", {}),
            {},
            'container "c" in pod "p" is waiting to start - no logs yet',
        ),
        (container("x", RUNNING), {}, 'container "c" in pod "p" is not available'),
        (container("c", RUNNING), {"previous": "true"}, NONE_BEFORE),
        (container("c", CRASHED), {"previous": "true"}, NONE_BEFORE),
        (container("c", RUNNING), {}, None),
        (container("c", ENDED), {}, None),
        (container("c", CRASHED, lastState=ENDED, restartCount=1), {}, None),
        (
            container("c", RUNNING, lastState=ENDED, restartCount=1),
            {"previous": "true"},
            None,
        ),
    ],
)
def test_kubelets_rule_for_instances(
    status: dict[str, Any], query: dict[str, str], answered: str | None
) -> None:
    body = pod()
    body["spec"]["nodeName"] = "n"
    world = World(body, kubelet=Off())
    assert world.refusal() == (400, f"{STARTING}ContainerCreating")
    world.status({"containerStatuses": [status]})
    if answered is None:
        assert world.log(**query) == ""
        assert isinstance(world.follow(**query), LogFollowed)
    else:
        assert world.refusal(**query) == (400, answered)
        refused = world.follow(**query)
        assert isinstance(refused, ApiResponse)
        assert refused.body["message"] == answered


def test_without_a_node_there_is_no_content() -> None:
    world = World(pod(), kubelet=Off())
    for query in ({}, {"previous": "true"}):
        assert world.read(**query) == ApiResponse(204, "")
        assert world.follow(**query) == ApiResponse(204, "")


def test_instances_have_identities() -> None:
    world = crashing()
    seen = []
    for _ in range(3):
        (status,) = world.containers()
        assert status["containerID"].startswith("stub://")
        seen.append(status["containerID"])
        world.settle(60)
        (ended,) = world.containers()
        assert ended["state"]["terminated"]["containerID"] == seen[-1]
        world.settle(10 * 2 ** ended["restartCount"])
        (again,) = world.containers()
        assert again["lastState"] == ended["state"]
    assert len({*seen}) == 3
    assert [*seen] == identities(crashing())


def identities(world: World) -> list[str]:
    found = []
    for number in range(3):
        found.append(world.containers()[0]["containerID"])
        world.settle(60 + 10 * 2**number)
    return found


def test_the_last_state_stays_when_a_container_becomes_ready() -> None:
    world = World(pod(run_for="1m", ready_after="10s"))
    world.settle(70)
    (before,) = world.containers()
    assert not before["ready"]
    world.settle(10)
    (after,) = world.containers()
    assert after["ready"]
    assert after["lastState"] == before["lastState"] != {}
    assert after["containerID"] == before["containerID"]


# -------------------------------------------------------------- the annotation


def test_a_container_writes_its_annotation_when_it_starts() -> None:
    world = World(pod("c", "d", log="one\ntwo", log__d="of d\n", start_after="5s"))
    world.settle(5)
    assert world.log(container="c") == "one\ntwo\n"
    assert world.log(container="c", timestamps="true").splitlines() == [
        "2023-11-14T22:13:25.000000000Z one",
        "2023-11-14T22:13:25.000001000Z two",
    ]
    assert world.log(container="d") == "of d\n"


def test_what_is_added_to_the_annotation_is_written() -> None:
    world = World(pod(log="one\n"))
    reader = Reader(world)
    assert reader.more() == ("one\n", False)
    world.now += 1
    world.note("one\ntwo\nthree")
    assert reader.more() == ("two\nthree\n", False)
    world.note("one\ntwo\nthree\nfour\n")
    assert reader.more() == ("four\n", False)
    assert world.log() == "one\ntwo\nthree\nfour\n"
    assert world.log(tailLines="1") == "four\n"
    assert reader.more() == ("", False)


def test_an_annotation_that_is_replaced_is_written_as_a_whole() -> None:
    world = World(pod(log="one"))
    world.note("two\n")
    assert world.log() == "one\ntwo\n"
    world.note(None)
    world.note("three\n")
    assert world.log() == "one\ntwo\nthree\n"


def test_other_changes_of_a_pod_write_nothing() -> None:
    world = World(pod(log="one\n"))
    world.note("x", "other.dev/note")
    world.note("y", f"{NOTE}.d")  # of another container
    assert world.log() == "one\n"


def test_a_container_writes_between_the_lines_of_its_annotation() -> None:
    world = World(pod(log="one"))
    world.write("by hand")
    world.note("one\nmore\n")
    assert world.log() == "one\nby hand\nmore\n"


def test_an_annotation_is_written_again_after_a_restart() -> None:
    world = World(pod(log="hello\n", run_for="1m"))
    world.settle(70)
    assert world.containers()[0]["restartCount"] == 1
    assert world.log() == world.log(previous="true") == "hello\n"
    assert "22:14:30.0" in world.log(timestamps="true")


def test_a_container_that_has_ended_writes_no_more() -> None:
    body = pod(log="one\n")
    body["spec"]["restartPolicy"] = "Never"
    world = World(body)
    world.settle(60)
    world.note("one\ntwo\n")
    assert world.log() == "one\n"


def test_lines_of_the_last_moment_are_written() -> None:
    world = World(pod(log="one\n", stop_after="20s"))
    world.send("DELETE", f"{PODS}/p")
    world.settle()
    reader = Reader(world)
    world.note("one\nbye\n")
    assert reader.more() == ("one\nbye\n", False)
    world.settle(30)
    assert reader.more() == ("", True)


def test_a_pod_without_a_kubelet_has_the_log_of_its_annotation() -> None:
    world = World(pod(log="one\ntwo\n"), kubelet=Off())
    assert world.log() == world.log(follow="true") == "one\ntwo\n"
    assert world.log(tailLines="1", timestamps="true") == (
        "2023-11-14T22:13:20.000001000Z two\n"
    )
    # Who follows has to wait for the container.
    assert world.follow() == ApiResponse(204, "")
    world.status({"containerStatuses": [container("c", RUNNING)]})
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}
    world.send("POST", f"{PODS}/p/binding", {**body, "target": {"name": "n"}})
    reader = Reader(world)
    assert reader.more() == ("one\ntwo\n", False)
    world.write("three")
    assert reader.more() == ("three\n", False)
    assert world.log() == "three\n"


def test_init_containers_have_logs() -> None:
    inits = (
        {"name": "first", "image": "i"},
        {"name": "side", "image": "i", "restartPolicy": "Always"},
    )
    body = pod(inits=inits, log__first="prepared\n", log__side="proxy\n")
    body["spec"]["restartPolicy"] = "Never"
    world = World(body)
    assert world.log(container="first") == "prepared\n"
    assert world.log(container="side") == "proxy\n"
    assert Reader(world, container="first").more() == ("prepared\n", True)
    assert Reader(world, container="side").more() == ("proxy\n", False)
    world.write("more", "side")
    with pytest.raises(ValueError, match=r"container first .* has terminated"):
        world.write("more", "first")
    world.settle(10)  # the pod ends
    first, side = world.containers("initContainerStatuses")
    assert first["state"]["terminated"]["exitCode"] == 0
    assert side["state"]["terminated"]["containerID"] == side["containerID"]
    assert Reader(world, container="side").more() == ("proxy\nmore\n", True)


# -------------------------------------------------------------------- following


@pytest.mark.parametrize(
    ("method", "path", "query", "follows"),
    [
        ("GET", LOG, (("follow", "true"),), True),
        ("GET", LOG, (("follow", ""),), True),
        ("GET", LOG, (("follow", "1"), ("follow", "false")), True),
        ("GET", LOG, (("follow", "False"),), False),
        ("GET", LOG, (("follow", "0"),), False),
        ("GET", LOG, (), False),
        ("POST", LOG, (("follow", "true"),), False),
        ("GET", f"{PODS}/p", (("follow", "true"),), False),
        ("GET", "/version", (("follow", "true"),), False),
        ("GET", "/apis/a.dev/v1/namespaces/n/pods/p/log", (("follow", "1"),), False),
    ],
)
def test_requests_that_follow_a_log(
    method: str, path: str, query: tuple[tuple[str, str], ...], follows: bool
) -> None:
    assert is_log_follow(ApiRequest(method, path, query)) is follows


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ApiRequest("GET", "/version"), 400),
        (ApiRequest("GET", f"{PODS}/p"), 400),
        (ApiRequest("GET", "/api/v1/nonsense"), 404),
        (ApiRequest("POST", LOG), 405),
        (ApiRequest("GET", LOG, accept="text/plain"), 406),
        (ApiRequest("GET", f"{PODS}/q/log"), 404),
    ],
)
def test_other_requests_follow_nothing(request_: ApiRequest, code: int) -> None:
    refused = log_followed(World(pod()).cluster, request_, START)
    assert isinstance(refused, ApiResponse)
    assert refused.status == code


def test_users_need_the_permission_to_read_logs() -> None:
    cluster = empty_cluster(rbac=True)
    request = ApiRequest("GET", LOG, (("follow", "1"),), user=User("jane"))
    refused = log_followed(cluster, request, START)
    assert isinstance(refused, ApiResponse)
    assert refused.status == 403


def test_a_reader_sees_each_line_once() -> None:
    world = World(pod(run_for="1m"))
    world.write("one")
    reader = Reader(world)
    assert reader.more() == ("one\n", False)
    assert reader.more() == ("", False)
    world.write("two\nthree")
    before = reader.followed
    assert reader.more() == ("two\nthree\n", False)
    reader.followed = before  # it is a value
    assert reader.more() == ("two\nthree\n", False)
    world.write("last")
    world.settle(60)
    assert reader.more() == ("last\n", True)
    world.settle(20)  # it has been restarted
    world.write("of the next instance")
    assert reader.more() == ("", True)


@pytest.mark.parametrize(
    ("query", "begins", "goes_on"),
    [
        ({"tailLines": "1"}, "line 4, \u00e9\n", "x\ny\n"),
        ({"tailLines": "0"}, "", "x\ny\n"),
        ({"sinceSeconds": "6"}, "line 4, \u00e9\n", "x\ny\n"),
        ({"sinceTime": "2023-11-14T22:14:00Z"}, "line 4, \u00e9\n", "x\ny\n"),
        ({"sinceTime": "2033-11-14T22:14:00Z"}, "", ""),
        (
            {"tailLines": "1", "timestamps": "true"},
            "2023-11-14T22:14:00.000000000Z line 4, \u00e9\n",
            "2023-11-14T22:14:05.250000000Z x\n2023-11-14T22:14:05.250001000Z y\n",
        ),
    ],
)
def test_the_options_of_a_reader(
    query: dict[str, str], begins: str, goes_on: str
) -> None:
    world = written_world()
    reader = Reader(world, **query)
    assert reader.more() == (begins, False)
    world.write("x\ny")
    assert reader.more() == (goes_on, False)


def test_a_limit_of_bytes_is_about_all_of_a_log() -> None:
    world = World(pod())
    world.write("one")
    reader = Reader(world, limitBytes="9")
    assert reader.more() == ("one\n", False)
    world.write("three and more")
    assert reader.more() == ("three", True)
    world.write("more")
    assert reader.more() == ("", True)


def test_a_reader_of_a_removed_pod_is_at_the_end() -> None:
    world = World(pod())
    reader = Reader(world)
    world.send("DELETE", f"{PODS}/p", gracePeriodSeconds="0")
    world.send("POST", PODS, pod())
    world.settle()
    world.write("of another pod")
    assert reader.more() == ("", True)
