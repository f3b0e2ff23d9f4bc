"""`fnop run` fails if the API server serves none of the handlers' kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.commands import Done, fnop
from tests.simulations import DEFINITION, example

HANDLERS = """
import fnop

@fnop.on.create("fnopexamples")
def created(name):
    return {{"seen": name}}

@fnop.on.{role}({selector})
def idle(name, **_):
    return None
"""

TWO = dict(
    DEFINITION,
    metadata={"name": "fnopexamples.other.dev"},
    spec={**DEFINITION["spec"], "group": "other.dev"},
)


def simulated(
    folder: Path, operator: str, *options: str, definitions: tuple[object, ...] = ()
) -> Done:
    (folder / "operator.py").write_text(operator)
    objects = (DEFINITION, *definitions, example())
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    command = ("run", "operator.py", "--simulate", "objects.yaml")
    return fnop(*command, *options, folder=folder)


@pytest.mark.parametrize("role", ["create", "event"])
@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param(
            '"widgets"',
            "serves no kind 'widgets', so idle is not called; is its definition "
            "missing?",
            id="like nothing",
        ),
        pytest.param(
            '"tokenreviews.authentication.k8s.io"',
            "tokenreviews.v1.authentication.k8s.io does not support list",
            id="that cannot be followed",
        ),
    ],
)
def test_a_selector_that_finds_nothing_fails_a_simulated_run(
    role: str, selector: str, words: str, tmp_path: Path
) -> None:
    done = simulated(tmp_path, HANDLERS.format(role=role, selector=selector))
    assert done.status == 1, done
    assert done.complaint.startswith("fnop: "), done
    assert words in done.complaint
    # What was done for others is shown all the same.
    assert done.documents[0]["status"]["created"] == {"seen": "example-1"}


MISTAKES = {
    "mistyped": ('"fnopexampels"', "no kind 'fnopexampels', which idle"),
    "another group": ('"fnopexamples.fnpo.dev"', "mean 'fnopexamples.fnop.dev'?"),
    "another version": (
        '"fnopexamples.v7.fnop.dev"',
        "mean 'fnopexamples.v1.fnop.dev'?",
    ),
    "built in": ('"deployments.app"', "did you mean 'deployments.apps'?"),
    "owned": (
        '"configmaps", owns=["fnopexampels"]',
        "'fnopexampels', which idle (operator.py:8) owns: did you mean "
        "'fnopexamples.fnop.dev'?",
    ),
    "owners": (
        '"pods", owner="fnopexampels"',
        "'fnopexampels', which idle (operator.py:8) takes for owners: did you mean",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_typing_error_ends_the_start(case: str, tmp_path: Path) -> None:
    selector, words = MISTAKES[case]
    role = "create"
    operator = HANDLERS.format(role=role, selector=selector)
    if case == "owned":
        operator = operator.replace('on.create("conf', 'reconcile("conf')
    done = simulated(tmp_path, operator)
    assert done.status == 2, done
    assert words in done.complaint
    assert "status" not in done.documents[0], "nothing is served"
    waits = simulated(tmp_path, operator, "--wait-for-kinds")
    assert waits.status != 2, waits
    assert waits.documents[0]["status"]["created"] == {"seen": "example-1"}


def test_an_ambiguous_selector_ends_the_start(tmp_path: Path) -> None:
    operator = HANDLERS.format(role="create", selector='"fnopexamples.fnop.dev"')
    done = simulated(tmp_path, operator, definitions=(TWO,))
    assert done.status == 2, done
    assert done.complaint == (
        "fnop: 'fnopexamples', which created (operator.py:4) handles, means "
        "fnopexamples.fnop.dev and fnopexamples.other.dev: name the group too, such as "
        "'fnopexamples.fnop.dev' (or let it wait for kinds with --wait-for-kinds)"
    )
    waits = simulated(tmp_path, operator, "--wait-for-kinds", definitions=(TWO,))
    assert waits.status == 1, waits
    assert "'fnopexamples' is ambiguous, so created is not called" in waits.complaint


def test_a_run_whose_only_pattern_fits_nothing_fails(tmp_path: Path) -> None:
    operator = "import fnop\n@fnop.on.event('*.exmaple.com')\ndef seen(**_): ...\n"
    done = simulated(tmp_path, operator)
    assert done.status == 1, done
    assert "fits '*.exmaple.com', so seen is not called" in done.complaint


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        pytest.param(
            '"issuers.cert-manager.io"',
            "has nothing of the group cert-manager.io, so idle is not called",
            id="a group of which nothing is there",
        ),
        pytest.param(
            '"services.serving.knative.dev"',
            "has nothing of the group serving.knative.dev",
            id="that has names of built-in kinds",
        ),
        pytest.param('"*.cert-manager.io"', "", id="a pattern"),
        pytest.param("lambda kind: kind.plural == 'issuers'", "", id="a function"),
        pytest.param('"fnopexamples"', "", id="a kind that is there"),
    ],
)
def test_an_operator_that_does_without_a_kind_ends_well(
    selector: str, told: str, tmp_path: Path
) -> None:
    """A kind that others may have installed is followed if it is served."""
    done = simulated(tmp_path, HANDLERS.format(role="event", selector=selector))
    assert done.status == 0, done
    lines = [each for each in done.err.splitlines() if each.startswith("fnop: ")]
    assert len(lines) == bool(told)
    assert told in "".join(lines)


def test_a_kind_that_the_operator_defines_itself_is_no_mistake(tmp_path: Path) -> None:
    operator = f"""
import fnop

DEFINITION = {TWO!r}

@fnop.on.startup()
async def define():
    await fnop.create(DEFINITION)

@fnop.on.create("fnopexamples.fnop.dev")
def created(name):
    return {{"seen": name}}

@fnop.on.create("fnopexamples.other.dev")
def other(name):
    return None
"""
    done = simulated(tmp_path, operator)
    assert done.status == 0, done


def test_handlers_of_one_selector_share_a_sentence(tmp_path: Path) -> None:
    operator = """
import fnop

@fnop.on.create("widgets")
def made(name): ...

@fnop.on.update("widgets")
def changed(name): ...

@fnop.timer("gadgets", interval=5)
def looks(name): ...
"""
    done = simulated(tmp_path, operator)
    assert done.status == 1, done
    lines = [each for each in done.err.splitlines() if each.startswith("fnop: ")]
    assert [each.partition("; ")[0] for each in lines] == [
        "fnop: the simulated cluster serves no kind 'widgets', so made and changed are "
        "not called",
        "fnop: the simulated cluster serves no kind 'gadgets', so looks is not called",
    ]
