"""Numbers of thousands of digits: refused or read as Kubernetes and kubectl do.

Python reads no integer of more than 4,300 digits, and says so by a `ValueError`.
What is expected here was answered by Kubernetes 1.36.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from fnop.adapters.common.manifests import ManifestProblem, parse_yaml, read_manifests
from fnop.adapters.serving.api_bodies import body_of
from fnop.core.values.merge import OperationFailed, operated
from fnop.interpreters.cluster.values.numbers import whole
from fnop.interpreters.recording.format.reader import (
    RecordingLimits,
    RecordingProblem,
    read_records,
)
from fnop.interpreters.runtime.protocol import MalformedBody
from tests.commands import fnop
from tests.recordings import compressed
from tests.served_clusters import MAPS, Client, serving
from tests.simulations import DEFINITION
from tests.thorough import examples

DIGITS = "9" * 5_000
TOO_LARGE = (DIGITS, f"-{DIGITS}", "9" * 309, "1e400", "-1e400", f"1e{DIGITS}")
KINDS = "/apis/fnop.dev/v1/namespaces/default/fnopexamples"
MERGE, OF_JSON = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving() as found:
        found.cluster.apply(DEFINITION)
        found.ask("POST", KINDS, manifest("1", "there").encode())
        found.ask("POST", MAPS, b'{"metadata": {"name": "there"}}')
        yield found


def manifest(number: str, name: str = "large") -> str:
    return (
        '{"apiVersion": "fnop.dev/v1", "kind": "FnopExample", '
        f'"metadata": {{"name": "{name}"}}, "spec": {{"n": {number}}}}}'
    )


@pytest.mark.parametrize("number", TOO_LARGE)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_object_with_one_is_refused(
    method: str, number: str, client: Client
) -> None:
    path = KINDS if method == "POST" else f"{KINDS}/there"
    status, found = client.ask(method, path, manifest(number).encode())
    assert (status, found["reason"]) == (400, "BadRequest")
    assert found["message"] == (
        'FnopExample in version "v1" cannot be handled as a FnopExample: json: cannot '
        f"unmarshal number {number} into Go value of type float64"
    )


@pytest.mark.parametrize("number", TOO_LARGE)
@pytest.mark.parametrize(
    ("path", "content_type", "body", "into"),
    [
        (f"{KINDS}/there", MERGE, '{"spec": {"n": %s}}', "value"),
        (
            f"{KINDS}/there",
            OF_JSON,
            '[{"op": "add", "path": "/spec/n", "value": %s}]',
            "struct field jsonPatchOp.value",
        ),
        (f"{MAPS}/there", STRATEGIC, '{"data": {"n": %s}}', "value"),
    ],
)
def test_a_patch_with_one_is_refused(
    path: str, content_type: str, body: str, into: str, number: str, client: Client
) -> None:
    status, found = client.ask("PATCH", path, (body % number).encode(), content_type)
    assert (status, found["reason"]) == (400, "BadRequest")
    assert found["message"] == (
        f"error decoding patch: json: cannot unmarshal number {number} into Go {into} "
        "of type float64"
    )


@pytest.mark.parametrize("number", [*TOO_LARGE, "9" * 20, "1.5", '"5"'])
def test_options_with_one_are_refused(number: str, client: Client) -> None:
    body = f'{{"gracePeriodSeconds": {number}}}'.encode()
    status, found = client.ask("DELETE", f"{KINDS}/nothing", body)
    assert (status, found["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("number", [DIGITS, "1e400", f"-{DIGITS}"])
def test_in_yaml_it_is_a_text(number: str, client: Client) -> None:
    text = manifest("NUMBER", "in-yaml").replace("NUMBER", number)
    status, found = client.ask("POST", KINDS, f"# YAML\n{text}".encode(), YAML)
    assert status == 201, found
    assert found["spec"] == {"n": number}
    client.ask("DELETE", f"{KINDS}/in-yaml")


YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"


def test_an_apply_with_one_is_taken(client: Client) -> None:
    text = f"# YAML\n{manifest(DIGITS, 'applied')}".encode()
    path = f"{KINDS}/applied?fieldManager=m"
    status, found = client.ask("PATCH", path, text, APPLY)
    assert (status, found["spec"]) == (201, {"n": DIGITS})
    client.ask("DELETE", f"{KINDS}/applied")


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        (f"limit={DIGITS}", 400, "value out of range"),
        (f"timeoutSeconds={DIGITS}", 400, "value out of range"),
        (f"resourceVersion={DIGITS}", 400, "value out of range"),
        ("limit=1_0", 400, "invalid syntax"),
        (f"limit={'0' * 5_000}1", 200, ""),
        (f"timeoutSeconds={'0' * 5_000}1", 200, ""),
        (f"resourceVersion={'0' * 5_000}1", 200, ""),
    ],
)
def test_in_the_query_of_a_listing(
    query: str, status: int, words: str, client: Client
) -> None:
    code, found = client.ask("GET", f"{MAPS}?{query}")
    assert code == status, found
    assert words in found.get("message", "")


@pytest.mark.parametrize(
    ("grace", "status", "words"),
    [
        (DIGITS, 400, "value out of range"),
        ("1e400", 400, "invalid syntax"),
        ("1_0", 400, "invalid syntax"),
        ("%D9%A5", 400, "invalid syntax"),  # five, in the digits of Arabic
        (f"{'0' * 5_000}1", 404, "not found"),
    ],
)
def test_in_the_query_of_a_deletion(
    grace: str, status: int, words: str, client: Client
) -> None:
    path = f"{MAPS}/nothing?gracePeriodSeconds={grace}"
    code, found = client.ask("DELETE", path)
    assert (code, words in found["message"]) == (status, True), found


TEXTS: dict[str, tuple[str, dict[str, Any]]] = {
    "version": (MAPS, {"metadata": {"name": "x", "resourceVersion": DIGITS}}),
    "percent": (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "metadata": {"name": "x"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "strategy": {"rollingUpdate": {"maxUnavailable": f"{DIGITS}%"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    ),
    "quantity": (
        "/api/v1/namespaces/default/resourcequotas",
        {"metadata": {"name": "x"}, "spec": {"hard": {"pods": DIGITS}}},
    ),
    "managed": (
        MAPS,
        {
            "metadata": {
                "name": "x",
                "managedFields": [
                    {
                        "manager": "m",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {f"i:{DIGITS}": {}}},
                    }
                ],
            }
        },
    ),
    "schedule": (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {
            "metadata": {"name": "x"},
            "spec": {
                "schedule": f"{DIGITS} * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "c", "image": "i"}],
                            }
                        }
                    }
                },
            },
        },
    ),
}


@pytest.mark.parametrize("where", TEXTS)
def test_in_a_text_that_is_read_as_a_number(where: str, client: Client) -> None:
    path, body = TEXTS[where]
    status, found = client.ask("POST", f"{path}?dryRun=All", body)
    assert status in (201, 400, 422), found
    assert "see the log" not in str(found)


def test_as_the_version_of_what_is_new(client: Client) -> None:
    path, body = TEXTS["version"]
    status, found = client.ask("POST", path, body)
    assert (status, found["message"]) == (
        500,
        "resourceVersion should not be set on objects to be created",
    )


def test_as_the_index_of_a_list(client: Client) -> None:
    patch = [{"op": "add", "path": f"/metadata/finalizers/{DIGITS}", "value": "a/b"}]
    status, found = client.ask("PATCH", f"{KINDS}/there", orjson.dumps(patch), OF_JSON)
    assert status in (400, 422), found


@pytest.mark.parametrize("index", [DIGITS, "²", "٣", "01"])
def test_as_the_index_of_an_operator_s_own_patch(index: str) -> None:
    step = {"op": "replace", "path": f"/spec/list/{index}", "value": 1}
    with pytest.raises(OperationFailed, match="is not an index of a list"):
        operated((step,), {"spec": {"list": list(range(20))}})


@given(st.text("0123456789", min_size=1, max_size=30))
def test_digits_are_a_number_as_long_as_it_has_64_bits(digits: str) -> None:
    assert whole(digits) == min(int(digits), 2**64)


@settings(max_examples=examples(80))
@given(
    st.from_regex(
        r"-?(0|[1-9][0-9]{0,400})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,4})?", fullmatch=True
    )
)
def test_any_number_of_json_is_read_or_named(text: str) -> None:
    """Values within float64 are read, and numbers that are too large are recognised."""
    found = body_of("application/json", f'{{"n": {text}}}'.encode())
    if abs(float(text)) == float("inf"):
        assert isinstance(found, MalformedBody)
        assert found.number == text
    else:
        assert found["n"] == pytest.approx(float(text), rel=1e-15)


# ------------------------------------------------------------ files of a user's


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (DIGITS, DIGITS),
        (f"-{DIGITS}", f"-{DIGITS}"),
        ("9" * 309, "9" * 309),
        ("9" * 300, 1e300),
        (f"0x{'f' * 200}", f"0x{'f' * 200}"),
        ("0b" + "1" * 62, 2**62 - 1),
        (str(2**63), float(2**63)),
    ],
)
def test_kubectl_reads_it_as_a_text(text: str, value: Any) -> None:
    assert parse_yaml(f"size: {text}") == {"size": value}


@pytest.mark.parametrize("number", TOO_LARGE)
def test_a_manifest_in_json_with_one_is_refused(number: str, tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_text(manifest(number))
    with pytest.raises(ManifestProblem, match=r"holds -?inf, which JSON cannot say"):
        read_manifests([str(file)])
    operator = tmp_path / "operator.py"
    operator.write_text(
        "import fnop\n@fnop.on.create('fnopexamples')\ndef made(**_): ...\n"
    )
    done = fnop("run", operator, "--simulate", file, folder=tmp_path)
    assert (done.status, "Traceback" in done.err) == (1, False)


def test_a_recording_with_one_is_refused() -> None:
    file = io.BytesIO(compressed(f'{{"format": {DIGITS}}}\n'.encode()))
    with pytest.raises(RecordingProblem):
        next(read_records(file, RecordingLimits()))
