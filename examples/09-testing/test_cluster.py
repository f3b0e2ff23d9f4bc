"""A cluster without an operator: are the manifests what a server takes?"""

from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "object.yaml"


def test_the_definition_admits_its_example_and_no_other_fields(
    fnop_cluster: Any,
) -> None:
    fnop_cluster.apply(FILE)
    found = fnop_cluster.get("fex", "example-1")
    assert found["spec"] == {"size": "2Gi"}

    path = "/apis/fnop.dev/v1/namespaces/default/fnopexamples/example-1"
    change = {"spec": {"size": "huge"}}
    merge = "application/merge-patch+json"
    answer = fnop_cluster.request("PATCH", path, change, content_type=merge)
    assert answer.status == 422
    assert "spec.size" in answer.body["message"]
