"""Record the corpus again.

    python -m tests.replays.record [NAME ...]

Recordings in folders such as `format-2` stay: earlier releases have made them.

Run it only if a recording can no longer be replayed, because the format or the core's
requests have changed on purpose; the changelog says so then. It needs the servers of
KUBEBUILDER_ASSETS, except for simulated runs, and takes about ten minutes.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import yaml

from tests.cluster.churn.failing import OPERATOR as CHURNING
from tests.cluster.churn.plans import Plan
from tests.cluster.churn.running import churn
from tests.cluster.envtest import ApiServer, missing, running
from tests.cluster.operating import Operator, User, operating
from tests.cluster.telling import file_of, played
from tests.commands import fnop
from tests.example_scenarios import STORIES, Story
from tests.patience import eventually
from tests.replays.corpus import FOLDER, INDEX, Recorded, read_index, replayed
from tests.simulations import ROOT, example

PEERING = ROOT / "examples" / "06-peering"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Recordings of a run by their names' endings, and the operator's file.
Recordings = tuple[dict[str, Path], Path]


# The operators of examples whose file has a name of its own.
FILES = {"17-models": "orders.py", "18-definitions": "databases.py"}


def simulated(name: str, folder: Path) -> Recordings:
    """An example in the simulated cluster."""
    case = ROOT / "examples" / name
    operator, models = case / FILES.get(name, "example.py"), case / "models.py"
    manifests = [case / each for each in ("crd.yaml", "object.yaml")]
    given = [each for each in manifests if each.exists()]
    calls: list[str | Path] = ["--calls", models] if models.exists() else []
    run: list[str | Path] = ["run", operator, "--simulate", *given, *calls]
    fnop(*run, "--record", "run.fnop", folder=folder)
    return {"": folder / "run.fnop"}, operator


def told(story: Story, api: ApiServer, namespace: str, folder: Path) -> Recordings:
    """An example's story on a real API server: a recording for each process."""
    operator = played(story, api, namespace, folder)
    return _numbered(operator.recordings), file_of(story)


def churned(plan: Plan, folder: Path) -> Recordings:
    """Objects that change while requests, the process and the servers fail."""
    report = asyncio.run(churn(plan, folder))
    print(report, file=sys.stderr)
    files = sorted(folder.glob("operator-*.fnop"), key=lambda file: file.stat().st_size)
    return _numbered(files[-3:]), CHURNING  # the longest


def met(api: ApiServer, namespace: str, folder: Path) -> Recordings:
    """Two peers: one freezes when the other begins, and serves again at its end."""
    low, high = folder / "low", folder / "high"
    for each in (low, high):
        each.mkdir()
    file = PEERING / "example.py"
    with (
        operating(file, api, namespace, low, "--priority=1") as one,
        operating(file, api, namespace, high, "--priority=10") as other,
    ):
        user = User(api, namespace)
        user.define()
        _with_peering(api, namespace)
        one.start(record=True)
        user.create(example("a", field="x"))
        _until(one, "a] create handler handle succeeded")
        other.start(record=True)
        _until(one, "frozen")
        user.create(example("b", field="x"))
        _until(other, "b] create handler handle succeeded")
        assert other.stop() == 0
        user.create(example("c", field="x"))
        _until(one, "c] create handler handle succeeded")
        assert one.stop() == 0
    return {"-low": one.recordings[0], "-high": other.recordings[0]}, file


def _until(operator: Operator, text: str) -> None:
    """Wait until the operator says so."""
    eventually(
        lambda: any(text in line for line in operator.lines),
        otherwise=lambda: "\n".join([f"it does not say {text!r}:", *operator.lines]),
    )


def _with_peering(api: ApiServer, namespace: str) -> None:
    for manifest in yaml.safe_load_all((PEERING / "peering.yaml").read_text()):
        assert api.raw("POST", DEFINITIONS, manifest)[0] in (201, 409)
    thing = {
        "apiVersion": "fnop.dev/v1",
        "kind": "FnopPeering",
        "metadata": {"name": "default"},
    }
    path = f"/apis/fnop.dev/v1/namespaces/{namespace}/fnoppeerings"
    eventually(lambda: api.raw("POST", path, thing)[0] in (201, 409))


def _numbered(files: list[Path]) -> dict[str, Path]:
    return {f"-{number}": file for number, file in enumerate(files, start=1)}


# ------------------------------------------------------------------- the corpus

# Seeds are chosen by nothing; `outages` restart the servers too.
PLANS = {
    "faults-1": Plan(40, 101, 12, outages=False, recorded=True),
    "faults-2": Plan(40, 102, 12, outages=False, recorded=True),
    "faults-3": Plan(40, 103, 40, outages=False, recorded=True),
    "outages": Plan(75, 104, 12, recorded=True),
    "replicas": Plan(45, 105, 12, outages=False, replicas=2, recorded=True),
}


Scenes = Mapping[str, Callable[[Path], Recordings]]


def simulations() -> Scenes:
    """The recordings without a server, by name."""
    plain = {path.parent.name for path in ROOT.glob("examples/*/example.py")}
    return {
        f"simulated-{name}": partial(simulated, name)
        for name in sorted({*plain, *FILES})
    }


def scenes(api: ApiServer) -> Scenes:
    """The recordings with a server, by name."""
    found: dict[str, Callable[[Path], Recordings]] = {}
    for story in STORIES:
        found[f"real-{story.example}"] = partial(_anew, told, story, api)
    found["real-peers"] = partial(_anew, met, api)
    for name, plan in PLANS.items():
        found[f"churn-{name}"] = partial(churned, plan)
    return found


def _anew(scene: Callable[..., Recordings], *args: object) -> Recordings:
    """In a namespace of its own."""
    *before, api, folder = args
    assert isinstance(api, ApiServer)
    return scene(*before, api, api.namespace(), folder)


def main(wanted: list[str]) -> int:
    """Record what is wanted, by the beginnings of names; all by default."""
    begins = tuple(wanted) or ("",)
    needs_server = any(not each.startswith("simulated-") for each in begins)
    if needs_server and (reason := missing()) is not None:
        print(reason, file=sys.stderr)
        return 2
    index = dict(read_index())
    with tempfile.TemporaryDirectory(prefix="replays-") as name:
        folder = Path(name)
        failed = _all_recorded(simulations(), begins, folder, index)
        if needs_server:
            (folder / "servers").mkdir()
            with running(folder / "servers") as api:
                failed += _all_recorded(scenes(api), begins, folder, index)
    return 1 if failed else 0


def _all_recorded(
    found: Scenes, begins: tuple[str, ...], folder: Path, index: dict[str, Recorded]
) -> int:
    """Record those whose names begin so; how many do not even replay now."""
    failed = 0
    for scene, play in found.items():
        if scene.startswith(begins):
            place = folder / scene
            place.mkdir()
            failed += _recorded(scene, play, place, index)
    return failed


# Identical, also as far as the recording of a killed process goes.
_VERDICT = re.compile(
    r"identical: (?P<whole>\d+) step"
    r"|fnop: identical for (?P<part>\d+) steps?, where the recording is cut off:"
)


def _recorded(
    scene: str,
    play: Callable[[Path], Recordings],
    folder: Path,
    index: dict[str, Recorded],
) -> int:
    """Record one scene; how many recordings do not even replay now."""
    files, operator = play(folder)
    path, failed = str(operator.relative_to(ROOT)), 0
    for ending, file in files.items():
        done = replayed(file, path, folder)
        verdict = _VERDICT.match(f"{done.out}{done.err}")
        if verdict is None:
            print(f"{scene}{ending} is not kept: {done.out}{done.err}")
            failed += 1
            continue
        name, steps = f"{scene}{ending}", int(verdict["whole"] or verdict["part"])
        index[name] = Recorded(name, path, steps, verdict["part"] is not None)
        shutil.copyfile(file, FOLDER / f"{name}.fnop")
        print(f"{name}: {steps} steps, {file.stat().st_size / 1024:.0f} KiB")
    about = {
        each.name: {"operator": each.operator, "steps": each.steps}
        | ({"cut_off": True} if each.cut_off else {})
        | ({} if each.otherwise is None else {"otherwise": each.otherwise})
        for each in sorted(index.values(), key=lambda each: each.name)
    }
    INDEX.write_text(json.dumps(about, indent=2) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
