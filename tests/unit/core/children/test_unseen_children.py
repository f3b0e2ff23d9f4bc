"""Children that the operator may not list: it creates and deletes none."""

from __future__ import annotations

from fnop.core.seam.commands import ListPage
from fnop.core.seam.inputs import StreamEnded
from tests.reconcilers import KIND, Desiring, config_map
from tests.simulations import example
from tests.stories import Story


class Hiding(Story):
    """The API server refuses to show ConfigMaps while `hides` is set."""

    hides = True

    def _list(self, command: ListPage) -> None:
        if self.hides and command.resource.plural == "configmaps":
            end = StreamEnded(command.stream, "refused", 403, "forbidden: no list")
            self.inbox.add(end)
        else:
            super()._list(command)


def hiding(*wanted: object) -> Hiding:
    op = Desiring(*wanted)
    return Hiding(op.registry, [example()])


def synced(run: Story) -> tuple[str, str]:
    found = run.get(KIND)
    assert found is not None
    (told,) = found["status"]["conditions"]
    return told["status"], told["message"]


def test_no_child_is_made_where_the_operator_may_not_look() -> None:
    run = hiding(config_map("near", a="1"))
    run.wait(20)
    assert run.get("configmaps", "near") is None
    status, why = synced(run)
    assert status == "False"
    assert "may not follow configmaps: forbidden: no list; grant the verbs" in why
    run.hides = False
    run.wait(600)
    assert run.get("configmaps", "near") is not None
    assert synced(run)[0] == "True"


def test_an_object_is_held_while_its_children_may_not_be_looked_at() -> None:
    run = hiding(config_map("far", "kube-public"))
    run.hides = False
    run.wait(20)
    assert run.get("configmaps", "far", namespace="kube-public")
    run.hides = True
    run.crash()
    run.delete(KIND)
    run.wait(60)
    assert run.get(KIND) is not None
    run.hides = False
    run.wait(600)
    assert run.get(KIND) is None
    assert run.get("configmaps", "far", namespace="kube-public") is None
