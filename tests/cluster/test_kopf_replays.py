"""Recordings of a Kopf operator on a real API server replay without a difference."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.envtest import ApiServer
from tests.cluster.operating import PROGRAMS, User, operating
from tests.commands import fnop
from tests.patience import eventually
from tests.simulations import ROOT, example

KIND = "fnopexamples"
LAST = "kopf.zalando.org/last-handled-configuration"
OPERATOR = """
from pathlib import Path

import kopf

FOLDER = Path(__file__).parent


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.level = 20
    settings.execution.max_workers = 4


@kopf.index(KIND)
def sizes(name, spec, **_):
    return {spec.get("size"): name}


@kopf.on.create(KIND, when=lambda spec, sizes, **_: spec.get("size") in sizes)
async def made(spec, patch, logger, **_):
    patch.fns.append(lambda body: body["metadata"].update(labels={"made": "yes"}))

    @kopf.subhandler(id="one")
    async def one(retry, **_):
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.2)

        @kopf.subhandler(id="inner")
        def inner(retry, **_):
            if not retry:
                raise kopf.TemporaryError("nor this", delay=0.2)

    @kopf.subhandler(id="two")
    def two(**_):
        if not (FOLDER / "go").exists():
            raise kopf.TemporaryError("no go", delay=0.3)
        logger.info("two is made")


@kopf.on.create(KIND)
@kopf.on.update(KIND, field="spec.size")
@kopf.on.resume(KIND)
def told(body, **_):
    kopf.info(body, reason="Told", message="it is there")
    return {"told": True}


@kopf.on.update(KIND)
def updated(retry, **_):
    if not retry:
        raise ValueError("a bug")


updated = kopf.on.update(KIND, id="again", backoff=0.2)(updated)


@kopf.on.event(KIND)
def seen(memo, event, **_):
    memo.count = memo.get("count", 0) + 1


@kopf.on.delete(KIND)
def gone(**_):
    pass


@kopf.daemon(KIND)
async def waiting(stopped, patch, **_):
    patch.status["daemon"] = "begun"
    await stopped.wait()


@kopf.timer(KIND, interval=0.5, initial_delay=lambda spec, **_: 0.1)
def ticking(patch, **_):
    with (FOLDER / "ticks").open("a") as file:
        file.write("tick\\n")
"""


def test_a_run_with_a_kill_in_its_middle_replays(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    user = User(apiserver, namespace)
    user.define()
    file = tmp_path / "with_kopf.py"
    text = OPERATOR.replace("(KIND", f'("{KIND}"')
    # Its own backoff is a minute.
    file.write_text(text.replace(f'@kopf.on.update("{KIND}")\n', ""))
    names = [f"x-{number}" for number in range(20)]
    folder = tmp_path / "runs"
    folder.mkdir()

    def is_handled(name: str) -> bool:
        found = user.get(KIND, name) or {}
        notes = found.get("metadata", {}).get("annotations", {})
        return LAST in notes and not any("made" in each for each in notes)

    with operating(
        file, apiserver, namespace, folder, program=PROGRAMS["fnop.kopf"]
    ) as operator:
        operator.start(record=True)
        for number, name in enumerate(names):
            user.create(example(name, size=number % 3))
        eventually(lambda: any("no go" in line for line in operator.lines))
        eventually(lambda: all((user.get(KIND, n) or {}).get("status") for n in names))
        operator.kill()
        (tmp_path / "go").touch()
        operator.start(record=True)
        eventually(lambda: all(map(is_handled, names)))
        for name in names[:10]:
            user.edit(KIND, name, {"spec": {"size": 7}})
        for name in names[10:]:
            user.delete(KIND, name)
        eventually(lambda: len(user.objects(KIND)) == 10)
        eventually(
            lambda: all(
                '"size":7' in user_notes(user, name).replace(" ", "")
                for name in names[:10]
            )
        )
        assert operator.stop() == 0
    first, second = operator.recordings
    cut = fnop("replay", "--kopf", first, file, folder=ROOT)
    assert cut.status == 4, cut
    assert "is cut off: its end was never written" in cut.err
    whole = fnop("replay", "--kopf", second, file, folder=ROOT)
    assert (whole.status, whole.err) == (0, ""), whole
    both = fnop("replay", "--kopf", folder, file, folder=ROOT)
    assert (both.status, both.err) == (0, ""), both


def user_notes(user: User, name: str) -> str:
    """The last-handled object, as its annotation has it."""
    found = user.get(KIND, name) or {}
    return str(found.get("metadata", {}).get("annotations", {}).get(LAST))
