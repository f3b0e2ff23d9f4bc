"""The cases of an operator for `fnop check`: its files, its objects, its scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from fnop.adapters.common.manifests import read_manifests
from fnop.adapters.definitions.class_kinds import definitions_for
from fnop.adapters.definitions.problems import DefinitionProblem
from fnop.adapters.testing.made_up_scripts import (
    made_up_scripts,
    pod_for,
    with_a_pod,
    with_another_namespace,
)
from fnop.adapters.testing.models import models_for
from fnop.adapters.testing.sampling import sampled
from fnop.core.api.resources import Resource, Selector
from fnop.core.handlers.declare.roles import Family
from fnop.core.handlers.program.program import Program
from fnop.core.values.errors import nearest
from fnop.effects.structs import replace
from fnop.interpreters.check.admission.unasked import unasked_by, unjudged_by
from fnop.interpreters.check.campaign.explore import Case, Explorer, prepared
from fnop.interpreters.check.state.expectations import expectations_in
from fnop.interpreters.check.state.grounds import placed
from fnop.interpreters.check.state.kinds import Place
from fnop.interpreters.check.state.records import Scene
from fnop.interpreters.check.state.scripts import Script
from fnop.interpreters.check.trials.trial import Trial
from fnop.interpreters.simulation.actions import Action, ActionRefused, Apply, Edit, act
from fnop.interpreters.simulation.admission import has_admission
from fnop.interpreters.simulation.externals import externals_of
from fnop.interpreters.simulation.lives import Life
from fnop.interpreters.simulation.scenario import catalogue_of
from fnop.interpreters.simulation.simulation import SimulatedRun

__all__ = [
    "SERVING",
    "CheckProblem",
    "Subjects",
    "actions_in",
    "cases_of",
    "definitions_beside",
    "denial_notes",
    "given_in",
    "has_scripts",
    "heeded_in",
    "manifests_of",
    "sound",
    "subjects_for",
    "subjects_of",
]

Manifest = dict[str, Any]

# Files next to an operator that are taken if no manifests are given.
BESIDE = ("crd.yaml", "crds.yaml", "crds", "object.yaml", "objects.yaml", "obj.yaml")
_DEFINITION = "CustomResourceDefinition"
# The number of drawn objects after which fnop reports that it cannot generate one.
DRAWN_MAX = 60
# A handler that is called more often in one script makes each schedule long.
PATIENT_CALLS = 100


class CheckProblem(Exception):
    """An operator that cannot be checked, in one sentence with the remedy."""


class Subjects(Struct, frozen=True):
    """The manifests of a check.

    `definitions` and `given` are there before the operator begins; `subjects` are the
    objects that the scripts create, edit and delete; some may be given as well. `notes`
    are sentences about generated parts. `made_up` are the plurals of kinds without an
    author's definition; `searched` names the files without it. The subjects are the
    author's unless they are drawn from the schemas.
    """

    definitions: tuple[Manifest, ...]
    given: tuple[Manifest, ...]
    subjects: tuple[Manifest, ...]
    notes: tuple[str, ...] = ()
    made_up: tuple[str, ...] = ()
    searched: str = ""
    is_drawn: bool = False


def subjects_for(
    program: Program,
    file: str,
    paths: Sequence[str],
    modules: Sequence[ModuleType],
    operator: Sequence[ModuleType] = (),
) -> Subjects:
    """Read the manifests for an operator's file, from files, folders and modules.

    Without any, take those next to the operator's file, if they define a kind, or are
    of a defined kind: manifests of other operators may be there, too. The `operator`'s
    own modules have classes that define kinds. Raises `CheckProblem`, and
    `ManifestProblem`.
    """
    found: list[str] = []
    if not paths and not any(hasattr(each, "CRDS") for each in modules):
        found = _found_beside(Path(file))
    manifests = _manifests_in(paths)
    for module in modules:
        manifests += manifests_of(module)
    stored = [each for module in modules for each in given_in(module)]
    looked_at = [*paths, *found, *(str(each.__file__) for each in modules)]
    beside = _manifests_in(found)
    scripted = any(map(has_scripts, modules))
    subjects = subjects_of(
        *(program, manifests),
        beside=beside,
        stored=stored,
        looked_at=looked_at,
        scripted=scripted,
        operator=operator,
    )
    notes = (f"with {', '.join(found)}",) if found else ()
    return replace(subjects, notes=(*notes, *subjects.notes))


def definitions_beside(paths: Sequence[str]) -> list[Manifest]:
    """The manifests of the definitions next to an operator's files."""
    places = [found for each in paths for found in _found_beside(Path(each))]
    manifests = _manifests_in(places)
    return [each for each in manifests if each.get("kind") == _DEFINITION]


def _found_beside(file: Path) -> list[str]:
    """The manifests next to an operator's file under a usual name."""
    places = [file.parent / name for name in BESIDE]
    return [str(each) for each in places if each.exists()]


# ---------------------------------------------------------------------- subjects


def subjects_of(
    program: Program,
    manifests: Iterable[Manifest],
    *,
    beside: Sequence[Manifest] = (),
    stored: Sequence[Manifest] = (),
    looked_at: Sequence[str] = (),
    scripted: bool = False,
    operator: Sequence[ModuleType] = (),
) -> Subjects:
    """Sort the manifests, and generate missing definitions and objects.

    A kind that no manifest defines has the definition of its class, if the `operator`'s
    modules, or the modules of its handlers, can name one. No option has named the
    manifests `beside` the operator, so their objects of unknown kinds are skipped.
    Objects that are `stored` exist before the operator begins, even if it serves their
    kind; generated scripts change them. `looked_at` are all files. If it is `scripted`,
    its author's scripts bring the objects. Raises `CheckProblem` if nothing can be
    generated.
    """
    found: list[Manifest] = []
    for each in (*beside, *manifests):
        if each not in found:  # a file may be named both as --crd and as --object
            found.append(each)
    notes: list[str] = []
    definitions = [each for each in found if each.get("kind") == _DEFINITION]
    others = [each for each in found if each.get("kind") != _DEFINITION]
    searched = _files_clause(definitions, looked_at)
    definitions += _class_definitions(program, definitions, operator, notes)
    missing = [*_made_up_definitions(program, definitions, searched, notes)]
    definitions += missing
    scene = prepared(Case(program, definitions))
    run = scene.base
    handled = _handled_kinds(program, run)
    for each in [e for e in others if e in beside and _kind_of(run, e) is None]:
        others.remove(each)
        name = f"{each.get('kind')} {(each.get('metadata') or {}).get('name')}"
        notes.append(f"left out {name} beside the operator: nobody defines its kind")
    subjects = [each for each in others if _kind_of(run, each) in handled]
    given = [e for e in others if e in stored or _kind_of(run, e) not in handled]
    is_drawn = not subjects and not scripted
    if is_drawn:
        subjects = _made_up_subjects(program, scene, handled, definitions, notes)
    return Subjects(
        tuple(definitions),
        tuple(given),
        tuple(subjects),
        tuple(notes),
        tuple(each["spec"]["names"]["plural"] for each in missing),
        searched,
        is_drawn,
    )


def _class_definitions(
    program: Program,
    definitions: Sequence[Manifest],
    operator: Sequence[ModuleType],
    notes: list[str],
) -> list[dict[str, Any]]:
    """The definitions of classes for kinds that no manifest defines."""
    try:
        own = definitions_for(program.handlers, definitions, operator)
    except DefinitionProblem as problem:
        raise CheckProblem(str(problem)) from None
    names = [each["metadata"]["name"] for each in own]
    notes += (f"took the definition of {name} from its class" for name in names)
    return own


def _made_up_subjects(
    program: Program,
    scene: Scene,
    handled: Sequence[Resource],
    definitions: Sequence[Manifest],
    notes: list[str],
) -> list[Manifest]:
    """Generated objects of the handled kinds, or a pod that writes logs.

    There may be none if the operator hears of the cluster. Otherwise it raises
    `CheckProblem`.
    """
    found = [*_made_up_objects(scene, handled, definitions, notes)]
    if not found and (pod := pod_for(program)) is not None:
        found = [pod]
        notes.append("made up a pod that writes logs; give another with --object")
    if not found and not program.hears_of_cluster:
        raise CheckProblem(
            "there is no object to check the operator with; give one with --object"
        )
    return found


def _files_clause(definitions: Sequence[Manifest], looked_at: Sequence[str]) -> str:
    """A clause that names the searched files, and the kinds in them.

    It is "" if no file was searched.

    >>> _files_clause([{"metadata": {"name": "widgets.e.com"}}], ["crd.yaml", "a.yaml"])
    'crd.yaml and a.yaml define widgets.e.com alone'
    >>> _files_clause([], ["object.yaml"])
    'object.yaml defines nothing'
    """
    if not looked_at:
        return ""
    names = [str((each.get("metadata") or {}).get("name")) for each in definitions]
    defined = f"{', '.join(names)} alone" if names else "nothing"
    verb = "defines" if len(looked_at) == 1 else "define"
    return f"{' and '.join(looked_at)} {verb} {defined}"


def _kind_of(run: SimulatedRun, manifest: Mapping[str, Any]) -> Resource | None:
    return catalogue_of(run).of_manifest(manifest)


# The families of handlers that serve objects: an index, or an event handler, only
# reads.
SERVING = frozenset((Family.CHANGE, Family.BACKGROUND, Family.RECONCILER))


def _handled_kinds(program: Program, run: SimulatedRun) -> list[Resource]:
    """The kinds that handlers serve, or else the kinds that they read."""
    catalogue = catalogue_of(run)
    for families in (SERVING, frozenset(Family)):
        found = [
            resource
            for handler in program.handlers
            if handler.selector is not None and handler.rule.family in families
            for resource in catalogue.find(handler.selector)
        ]
        if found:
            return [*dict.fromkeys(found)]
    return []


def _made_up_definitions(
    program: Program, definitions: Sequence[Manifest], searched: str, notes: list[str]
) -> Iterator[Manifest]:
    """Definitions for kinds that handlers name and no definition covers."""
    why = f": {searched}" if searched else ""
    run = prepared(Case(program, definitions)).base
    catalogue = catalogue_of(run)
    made: set[str] = set()
    for handler in program.handlers:
        selector = handler.selector
        if selector is None or any(map(selector.matches, catalogue.resources)):
            continue
        plural = selector.plural or selector.any_name
        if not plural or plural in made:
            continue
        made.add(plural)
        notes.append(
            f"made up a definition of {plural} that takes any spec{why}; give --crd"
        )
        yield _definition(selector, plural)


_OPEN = "x-kubernetes-preserve-unknown-fields"
_ANYTHING = {"type": "object", _OPEN: True}


def _definition(selector: Selector, plural: str) -> Manifest:
    group = selector.group or "example.com"
    singular = plural.removesuffix("s") or plural
    schema = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
    version = {
        "name": selector.version or "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": _DEFINITION,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": singular,
                "kind": selector.kind or singular.capitalize(),
            },
            "versions": [version],
        },
    }


def _made_up_objects(
    scene: Scene,
    handled: Sequence[Resource],
    definitions: Sequence[Manifest],
    notes: list[str],
) -> Iterator[Manifest]:
    run, asked = scene.base, scene.booted
    schemas = {
        f"{each['spec']['names']['plural']}.{each['spec']['group']}": each["spec"]
        for each in definitions
    }
    for resource in handled:
        spec = schemas.get(f"{resource.plural}.{resource.group}")
        if spec is None:
            continue
        version = next(each for each in spec["versions"] if each["storage"])
        schema = _schema_of(version)
        made = {
            "apiVersion": f"{spec['group']}/{version['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": "x"},
            **_sampled_stanzas(schema),
        }
        # The drawn objects obey rules about several fields.
        problem = _refusal(run, made)
        if problem and "properties" in schema:
            made = _draw_object(run, spec, version, [*made]) or made
        if problem and _refusal(run, made):
            raise CheckProblem(
                f"no valid {made['kind']} could be made up from its schema "
                f"({problem}); give one with --object"
            )
        if has_admission(scene.program) and _refusal(asked, made):
            # Its handlers may accept another one; else they show why they accept none.
            made = _draw_object(asked, spec, version, [*made]) or made
        notes.append(f"made up {made['kind']} x; give your own with --object")
        yield made


def _schema_of(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a version, or `{}` if it has none.

    An open schema without fields gets a spec that accepts anything, as most kinds have
    a spec.
    """
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    if schema.get(_OPEN) and not schema.get("properties"):
        return {**schema, "properties": {"spec": _ANYTHING}}
    found: Mapping[str, Any] = schema
    return found


def _refusal(run: SimulatedRun, manifest: Manifest) -> str:
    """The reason why the cluster refuses an object; "" if it accepts it."""
    fork = run.fork()
    try:
        act(fork, Apply(manifest))
    except ActionRefused as problem:
        return str(problem)
    return ""


def _draw_object(
    run: SimulatedRun,
    spec: Mapping[str, Any],
    version: Mapping[str, Any],
    stanzas: Sequence[str],
) -> Manifest | None:
    """The smallest object that Hypothesis draws and the cluster accepts, or None.

    It has those of the `stanzas` that its schema knows. Hypothesis is an extra.
    """
    schema = _schema_of(version)
    known = [each for each in stanzas if each in (schema.get("properties") or {})]
    required = [*dict.fromkeys((*(schema.get("required") or ()), *known))]
    narrow = {"openAPIV3Schema": {**schema, "required": required}}
    versions = [{**version, "schema": narrow}]
    definition = {"kind": _DEFINITION, "spec": {**spec, "versions": versions}}
    try:
        from fnop.adapters.testing.strategies import smallest
    except ModuleNotFoundError:
        return None
    return smallest(definition, lambda found: not _refusal(run, found), DRAWN_MAX)


def _sampled_stanzas(schema: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("apiVersion", "kind", "metadata", "status")
    return {
        key: sampled(value)
        for key, value in (schema.get("properties") or {}).items()
        if key not in left_out
    }


# ------------------------------------------------------------------------- cases


def cases_of(
    program: Program,
    subjects: Subjects,
    *,
    calls: Mapping[Any, Callable[..., Any]] | None = None,
    module: ModuleType | None = None,
    namespace: str = "default",
    tell: Callable[[str], object] = lambda note: None,
    begin: Callable[[SimulatedRun], Life] | None = None,
) -> list[Case]:
    """The cases of an operator: one for each script.

    `module` is an author's file with SCRIPTS, RIVALS and expectations. Generated
    scripts come with notes, with which `tell` is called. `begin` is that of the cases.
    Raises `CheckProblem` if the cluster accepts none of the objects, and for models
    that cannot be forked.
    """
    models = models_for(calls)
    try:
        externals_of(models)
    except TypeError as problem:
        raise CheckProblem(str(problem)) from problem
    base = Case(
        program,
        subjects.definitions,
        (),
        subjects.given,
        models,
        namespace=namespace,
        begin=begin,
    )
    base = base._replace(**heeded_in(module))
    scripts = _own_scripts({} if module is None else vars(module))
    if not scripts:
        base = with_another_namespace(base._replace(made_up=True))
        base = with_a_pod(base, subjects.subjects)
        anew: list[Case] = []
        if has_admission(program) and not subjects.is_drawn:
            base, anew = _with_what_is_denied(base, subjects.subjects, tell)
        try:
            found = made_up_scripts(base, subjects.subjects)
        except ActionRefused as problem:
            raise CheckProblem(
                f"{problem}; give another object with --object"
            ) from None
        except LookupError as problem:
            raise CheckProblem(str(problem)) from None
        for note in found.notes:
            tell(note)
        return [*_cases(base, found.scripts), *anew]
    return _cases(base, scripts)


def _cases(base: Case, scripts: Iterable[Script]) -> list[Case]:
    return [
        base._replace(
            name=each.name,
            script=each.actions,
            calm=each.calm,
            mistake=each.mistake,
        )
        for each in scripts
    ]


def _with_what_is_denied(
    base: Case, subjects: Sequence[Manifest], tell: Callable[[str], object]
) -> tuple[Case, list[Case]]:
    """The case in which objects that the operator denies are already stored.

    A rule applies to new objects, and others were stored before it. Their creation is a
    case of its own.
    """
    script = tuple(Apply(dict(each)) for each in subjects)
    trial = Trial(replace(prepared(base), script=script)).play()
    stored = [
        e for e in trial.journal.refusals if e.denials and isinstance(e.action, Apply)
    ]
    for refusal in stored:
        denial = refusal.denials[0]
        tell(
            f"{denial.handler} ({denial.place}) denies `{refusal.action}`: "
            f"{denial.message}; it is tried as one that was stored before the rule"
        )
    if not stored:
        return base, []
    given = [
        each.action.manifest
        for each in stored
        if isinstance(each.action, Apply) and each.action.manifest not in base.given
    ]
    anew = base._replace(name="create what is denied", script=script, calm=True)
    return base._replace(given=(*base.given, *given)), [anew]


def sound(explorers: Sequence[Explorer]) -> tuple[list[Explorer], list[str]]:
    """The explorers of sound scripts, and a note for each that is skipped, or missing.

    Generated scripts are skipped if they edit fields that the cluster protects. Raises
    `CheckProblem` for an author's script that the cluster refuses, and for rivals,
    expectations and models without any effect.
    """
    kept: list[Explorer] = []
    notes: list[str] = []
    for explorer in explorers:
        for sentence in explorer.mistakes:
            raise CheckProblem(sentence)
        refused = [
            each
            for each in explorer.refused
            if not explorer.case.made_up or isinstance(each.action, Edit)
        ]
        if refused and not explorer.case.made_up:
            raise CheckProblem(str(refused[0]))
        if refused:
            reason = refused[0].reason
            notes.append(f"left out the script {explorer.case.name!r}: {reason}")
        else:
            kept.append(explorer)
    notes += _patience_notes(explorers)
    notes += denial_notes(explorers)
    notes += _unasked_notes(kept)
    notes += _unmatched_notes(explorers)
    return kept, notes


def _patience_notes(explorers: Sequence[Explorer]) -> Iterator[str]:
    """A note for each handler that makes every schedule long, by its many calls.

    Only an operator that lives in this process calls them in real time.
    """
    known: set[str] = set()
    for explorer in explorers:
        counts = explorer.reference.benign.seen.trial.journal.counts
        calls: Counter[str] = Counter()
        for (place, handler, *_), number in counts.items():
            if place == Place.CALL.value and explorer.case.begin is not None:
                calls[handler] += number
        for handler, number in calls.items():
            if number > PATIENT_CALLS and handler not in known:
                known.add(handler)
                yield (
                    f"{handler} is called {number} times in the script "
                    f"{explorer.case.name!r}, and again in each schedule of it: if it "
                    "waits for an object, give that one with --object"
                )


def denial_notes(explorers: Sequence[Explorer]) -> Iterator[str]:
    """A note for each handler that denies a script's actions, with the first action."""
    known: set[str] = set()
    for explorer in explorers:
        for refusal in explorer.denied:
            if explorer.case.mistake:
                continue
            what = f"`{refusal.action}` of the script {explorer.case.name!r}"
            if refusal.spoilt_by and refusal.spoilt_by not in known:
                known.add(refusal.spoilt_by)
                yield (
                    f"{refusal.spoilt_by} makes of {what} what the cluster refuses, "
                    f"and it goes on without it: {refusal.reason}"
                )
            for denial in refusal.denials:
                if denial.handler not in known:
                    known.add(denial.handler)
                    yield (
                        f"{denial.handler} ({denial.place}) denies {what}, "
                        f"which goes on without it: {denial.message}"
                    )


def _unasked_notes(explorers: Sequence[Explorer]) -> Iterator[str]:
    """A note for each admission handler that the scripts call too little."""
    several = [each.reference.benign.admitting for each in explorers]
    found = unasked_by(several)
    for handler in dict.fromkeys(chain(*found.values())):
        laws = ", ".join(law for law, unasked in found.items() if handler in unasked)
        yield (
            f"{placed(handler)} is never asked about a write that would show {laws}; "
            "give an object that it is about with --object, or a script with --script"
        )
    for handler, words in unjudged_by(several).items():
        yield (
            f"whether {placed(handler)} lets an object go is not judged: it reads "
            f"{words}, and denies each deletion; let a script do what admits one"
        )


def _unmatched_notes(explorers: Sequence[Explorer]) -> Iterator[str]:
    """A note for each entry of HISTORY that matches nothing at the scripts' ends."""
    benign = [each.reference.benign for each in explorers]
    worlds = [world for each in benign for world in (each.seen.world, each.fresh or {})]
    aliases = {alias for world in worlds for alias in world}
    kinds = sorted({alias.partition("/")[0] for alias in aliases})
    for entry in dict.fromkeys(e for each in explorers for e in each.case.history):
        alias, kind = entry.partition(" ")[0], entry.partition("/")[0]
        if any(each.startswith(alias) for each in aliases):
            continue
        in_full = (each for each in kinds if each.startswith(f"{kind}."))
        meant = next(in_full, None) or nearest(kind, kinds)
        ask = f"; did you mean {f'{meant}/'!r}?" if meant else ""
        yield f"HISTORY has {entry!r}, and no script ends with such an object{ask}"


# ------------------------------------------------------------- an author's script


def manifests_of(module: ModuleType) -> list[Manifest]:
    """The CRDS and GIVEN of a file of scripts. Raises `CheckProblem`."""
    return [*_named_in(module, "CRDS"), *given_in(module)]


def given_in(module: ModuleType) -> list[Manifest]:
    """The GIVEN of a file of scripts. Raises `CheckProblem`."""
    return _named_in(module, "GIVEN")


def _named_in(module: ModuleType, name: str) -> list[Manifest]:
    several = getattr(module, name, ())
    if not isinstance(several, (list, tuple)):
        raise CheckProblem(
            f"{name} is not a list of manifests: write [{{'apiVersion': ...}}]"
        )
    return [_manifest(each, f"{name}[{place}]") for place, each in enumerate(several)]


def _manifest(found: Any, where: str) -> Manifest:
    if not isinstance(found, Mapping):
        raise CheckProblem(f"{where} is not a manifest but {found!r}: write a dict")
    for field, kind in (("apiVersion", str), ("kind", str), ("metadata", Mapping)):
        if not isinstance(found.get(field), kind):
            raise CheckProblem(
                f"{where} has no {field}: a manifest is a dict with apiVersion, kind "
                "and metadata"
            )
    return dict(found)


def heeded_in(module: ModuleType | None) -> dict[str, Any]:
    """The rivals, expectations and history in a file of scripts, for a `Case`.

    Raises `CheckProblem` for invalid ones.
    """
    names = {} if module is None else vars(module)
    rivals, history = names.get("RIVALS", {}), names.get("HISTORY", ())
    if not isinstance(rivals, Mapping) or not all(map(callable, rivals.values())):
        raise CheckProblem(
            "RIVALS is not a dict from kinds to functions: write "
            "{'deployments.apps': autoscaler}"
        )
    if not isinstance(history, (list, tuple)) or not all(
        isinstance(each, str) and each for each in history
    ):
        raise CheckProblem(
            f"HISTORY is not a tuple of texts but {history!r}: write ('pods/',), with "
            "the comma"
        )
    return {
        "rivals": rivals,
        "expectations": expectations_in(names),
        "history": tuple(history),
    }


def has_scripts(module: ModuleType | None) -> bool:
    """Whether a file has scripts of its own. Raises `CheckProblem` for invalid ones."""
    return module is not None and bool(_own_scripts(vars(module)))


def _own_scripts(names: Mapping[str, Any]) -> list[Script]:
    several = names.get("SCRIPTS", {})
    if not isinstance(several, Mapping):
        raise CheckProblem("SCRIPTS is not a dict: write {'create': [apply(...)]}")
    if "SCRIPTS" in names and not several:
        raise CheckProblem(
            "SCRIPTS is empty: write {'create': [apply(...)]}, or leave it out, and "
            "scripts are made up"
        )
    found = {f"SCRIPTS[{name!r}]": (name, each) for name, each in several.items()}
    if "SCRIPT" in names:
        found["SCRIPT"] = "script", names["SCRIPT"]
    return [
        Script(str(name), actions_in(each, at)) for at, (name, each) in found.items()
    ]


def actions_in(found: Any, where: str) -> tuple[Action, ...]:
    """The actions of an author's script. Raises `CheckProblem` for an invalid one.

    `where` is its name in messages.
    """
    if not isinstance(found, (list, tuple)) or not found:
        raise CheckProblem(f"{where} is not a list of actions: write [apply(...)]")
    for each in found:
        if not isinstance(each, Action):
            raise CheckProblem(
                f"{where} holds {each!r}, which is not an action: use apply, edit, "
                "delete and wait of fnop.testing"
            )
        if isinstance(each, Apply):
            _manifest(each.manifest, f"a manifest that {where} applies")
    return tuple(found)


def _manifests_in(paths: Sequence[str]) -> list[Manifest]:
    """The manifests of files and folders. Raises `ManifestProblem`."""
    return read_manifests(paths) if paths else []
