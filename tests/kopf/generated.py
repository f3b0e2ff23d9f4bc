"""Operators and stories that a seed draws: nobody has tuned fnop to them.

What an operator does depends on its object alone, and no step of a story races with
another: each look waits for rest. So two players that differ do so for a reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

__all__ = ["write_story"]

Json = dict[str, Any]

# What a handler does at its next attempts, by the word in its object's spec: `ok`
# succeeds. Delays are over before a look, or last beyond the story.
_MODES = ("ok", "ok", "ok", "soon", "later", "bad", "never")
_ITEMS = ("ok1", "ok2", "soon1", "later1", "bad1", "never1")
_BEHAVIOUR = '''
def act(mode, retry):
    """Succeed or fail, as the object's spec says."""
    if mode.startswith("soon") and retry < 1:
        raise kopf.TemporaryError("soon", delay=0.2)
    if mode.startswith("later"):
        raise kopf.TemporaryError("later", delay=1000)
    if mode.startswith("bad") and retry < 2:
        raise ValueError(f"bad {retry}")
    if mode.startswith("never"):
        raise kopf.PermanentError("never")
'''
_PREFIX = "random.example.com"
# With `verbose=True`, Kopf writes each record anew, and does not wait for retries.
_PROGRESS = (
    f"kopf.AnnotationsProgressStorage(prefix='{_PREFIX}')",
    f"kopf.AnnotationsProgressStorage(prefix='{_PREFIX}', v1=False)",
    "kopf.StatusProgressStorage(field='status.progress')",
    f"kopf.SmartProgressStorage(prefix='{_PREFIX}')",
    f"kopf.MultiProgressStorage([kopf.AnnotationsProgressStorage(prefix='{_PREFIX}'), "
    "kopf.StatusProgressStorage()])",
)
_DIFFBASE = (
    f"kopf.AnnotationsDiffBaseStorage(prefix='{_PREFIX}')",
    "kopf.StatusDiffBaseStorage(field='status.handled')",
    f"kopf.AnnotationsDiffBaseStorage(prefix='{_PREFIX}', "
    "ignored_fields=['spec.unseen'])",
)
_FILTERS = (
    "labels={'a': 'x'}",
    "labels={'a': kopf.PRESENT}",
    "labels={'a': kopf.ABSENT}",
    "labels={'a': lambda value, **_: value in ('x', 'y')}",
    "annotations={'b': kopf.PRESENT}",
    "annotations={'b': '1'}",
    "when=lambda spec, **_: spec.get('n', 0) % 2 == 0",
    "when=lambda body, **_: 'n' in body.spec",
)
_FIELDS = ("spec.n", "spec.deep", "spec.deep.er", "spec.items", "metadata.labels.a")
_VALUES = ("", "", "value=kopf.PRESENT", "value=kopf.ABSENT")
_CHANGED_VALUES = ("old=kopf.PRESENT", "new=kopf.PRESENT", "old=kopf.ABSENT")
_STATUS_EFFECTS = (
    "patch.status['{0}'] = {{'n': spec.get('n'), 'retry': retry}}",
    "patch.status.setdefault('shared', {{}})['{0}'] = spec.get('n')",
    "kopf.info(body, reason='Did', message='{0}')",
)
_EFFECTS = (
    *_STATUS_EFFECTS,
    "patch.metadata.annotations['by-{0}'] = str(spec.get('n'))",
    "patch.setdefault('spec', {{}})['made-{0}'] = True",
    "patch.metadata.labels['by-{0}'] = 'x'",
)


def write_story(seed: int, folder: Path) -> None:
    """Write an operator and its story, as replicas are."""
    folder.mkdir(parents=True)
    draw = Random(seed)
    operator = _Operator(draw)
    (folder / "operator.py").write_text(operator.text)
    has_status = draw.random() < 0.6
    (folder / "crd.yaml").write_text(
        yaml.safe_dump(_definition(subresource=has_status))
    )
    story = {
        "program": "kopf",
        "seconds": 20,
        "watches": ["things"],
        "records": ["things"],
        "loose": operator.loose,
        "apart": operator.apart,
        "lucky_lines": ["Unprocessed streams left"],
        "steps": [*_Story(draw, operator.count).steps()],
    }
    (folder / "story.yaml").write_text(yaml.safe_dump(story, sort_keys=False))


def _definition(*, subresource: bool) -> Json:
    group, open_ = "replicas.fnop.dev", {"x-kubernetes-preserve-unknown-fields": True}
    part = {"type": "object", **open_}
    schema = {"type": "object", "properties": {"spec": part, "status": part}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if subresource else {}),
    }
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    spec = {"group": group, "scope": "Namespaced", "names": names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {**spec, "versions": [version]},
    }


class _Operator:
    """The text of an operator, and what its handlers are called."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self.loose: list[str] = []
        self.apart: list[str] = []
        self.count = draw.randint(3, 7)
        handlers = [self._handler(number) for number in range(self.count)]
        self.text = "\n\n".join((self._head(), *handlers))

    def _head(self) -> str:
        pick = self._draw.choice
        return f'''"""A random operator."""

import json

import kopf

{_BEHAVIOUR}

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.progress_storage = {pick(_PROGRESS)}
    settings.persistence.diffbase_storage = {pick(_DIFFBASE)}
    settings.persistence.finalizer = "{_PREFIX}/{pick(("hold", "Finalizer"))}"
    settings.persistence.consistency_timeout = 0.5  # less than before a look
    settings.execution.default_backoff = 0.2
    settings.posting.enabled = {pick((True, True, False))}


def changes(diff):
    return sorted(json.dumps([op, ".".join(path), *more]) for op, path, *more in diff)
'''

    def _handler(self, number: int) -> str:
        roles: tuple[str, ...] = (
            *("create", "update", "update", "changed"),
            *("delete", "resume", "field"),
        )
        if number == 0:
            roles = ("create", "update")  # else fnop stores no last-handled object
        else:
            roles = (*roles, "event", "timer", "daemon")
        role = self._draw.choice(roles)
        name = f"h{number}"
        if role == "event":
            self.loose.append(name)
        made: str = getattr(self, f"_{role}")(name)
        return made

    # ------------------------------------------------------------ declarations

    def _options(self, *more: str, retries: bool = True) -> str:
        draw, options = self._draw, ["'things'", *(each for each in more if each)]
        if draw.random() < 0.4:
            options.append(draw.choice(_FILTERS))
        if retries and draw.random() < 0.3:
            options.append(draw.choice(("retries=1", "retries=2", "backoff=0.3")))
        if retries and draw.random() < 0.2:
            mode = draw.choice(("IGNORED", "TEMPORARY", "PERMANENT"))
            options.append(f"errors=kopf.ErrorsMode.{mode}")
        return ", ".join(options)

    def _field_options(self, *more: str) -> tuple[str, str]:
        field = self._draw.choice(_FIELDS)
        return field, self._options(f"field='{field}'", self._draw.choice(more))

    def _of_change(self, name: str, *decorators: str) -> str:
        body = [
            f'logger.info(f"{name}: {{reason}} {{retry}} {{changes(diff)}}")',
            *self._effects(name),
        ]
        return self._function(name, "reason, diff", decorators, body)

    def _create(self, name: str) -> str:
        return self._of_change(name, f"kopf.on.create({self._options()})")

    def _update(self, name: str) -> str:
        if self._draw.random() < 0.5:
            return self._of_change(name, f"kopf.on.update({self._options()})")
        more = (*_VALUES, *_CHANGED_VALUES)
        _, options = self._field_options(*more)
        return self._of_change(name, f"kopf.on.update({options})")

    def _changed(self, name: str) -> str:
        """One function for several causes."""
        verbs = self._draw.sample(("create", "update", "resume"), 2)
        id = f"id='{name}'" if self._draw.random() < 0.5 else ""
        made = [f"kopf.on.{each}({self._options(id)})" for each in verbs]
        return self._of_change(name, *made)

    def _delete(self, name: str) -> str:
        more = self._draw.choice(("", "", "optional=True"))
        return self._of_change(name, f"kopf.on.delete({self._options(more)})")

    def _resume(self, name: str) -> str:
        more = self._draw.choice(("", "deleted=True"))
        return self._of_change(name, f"kopf.on.resume({self._options(more)})")

    def _field(self, name: str) -> str:
        _, options = self._field_options(*_VALUES)
        return self._of_change(name, f"kopf.on.field({options})")

    def _event(self, name: str) -> str:
        # After a patch, Kopf may leave changes unhandled until the next event.
        body = [f"logger.debug('{name}')"]
        options = self._options(retries=False)
        return self._function(name, "type", (f"kopf.on.event({options})",), body)

    def _timer(self, name: str) -> str:
        return self._in_background(name, f"timer({{}}, interval={10_000})")

    def _daemon(self, name: str) -> str:
        return self._in_background(name, "daemon({})")

    def _in_background(self, name: str, form: str) -> str:
        draw = self._draw
        delay = draw.choice(("", "initial_delay=0.1", "initial_delay=0.7"))
        id = name
        if draw.random() < 0.3:
            field, options = self._field_options("value=kopf.PRESENT", "")
            id = f"{name}/{field}"
            options += f", {delay}" if delay else ""
        else:
            options = self._options(delay)
        self.apart.append(id)
        # It changes only what no handler of changes looks at.
        effects = self._effects(name, _STATUS_EFFECTS)
        body = [f"logger.info(f\"'{id}' {{retry}}\")", *effects]
        return self._function(name, "", (f"kopf.{form.format(options)}",), body)

    # ------------------------------------------------------------------- bodies

    def _effects(self, name: str, choices: Sequence[str] = _EFFECTS) -> Iterator[str]:
        draw = self._draw
        before = draw.random() < 0.5
        act = f"act(spec.get('{name}', 'ok'), retry)"
        if not before:
            yield act
        for each in draw.sample(choices, draw.randint(0, 2)):
            yield each.format(name)
        if before:
            yield act
        result = draw.choice(
            ("None", "{'n': spec.get('n')}", "'done'", "[retry]", "spec.get('n')")
        )
        yield f"return {result}"

    def _function(
        self, name: str, arguments: str, decorators: tuple[str, ...], body: list[str]
    ) -> str:
        draw = self._draw
        is_async = draw.random() < 0.5
        takes = ", ".join(x for x in ("spec, body, patch, logger", arguments) if x)
        retry = ", retry" if any("retry" in each for each in body) else ""
        lines = [
            *(f"@{each}" for each in decorators),
            f"{'async ' if is_async else ''}def {name}({takes}{retry}, **_):",
        ]
        has_parts = any(
            each.startswith(("kopf.on.create", "kopf.on.update")) for each in decorators
        )
        if has_parts and draw.random() < 0.4:
            lines += [f"    {each}" for each in self._parts(name)]
        return "\n".join((*lines, *(f"    {each}" for each in body)))

    def _parts(self, name: str) -> Iterator[str]:
        yield "for item in spec.get('items', []):"
        yield "    @kopf.subhandler(id=item)"
        yield "    def part(*, retry, logger, patch, item=item, **_):"
        yield f'        logger.info(f"{name}/{{item}}: {{retry}}")'
        yield f"        patch.status['{name}-' + item] = retry"
        yield "        act(item, retry)"
        yield f"        return {self._draw.choice(('None', '{1: item}', 'retry'))}"
        yield ""


class _Story:
    """The steps of a story: users edit a few objects, and the operator ends."""

    def __init__(self, draw: Random, count: int) -> None:
        self._draw, self._count = draw, count
        self._names = ["one", "two", "three"]
        self._there: dict[str, bool] = {}
        self._looks = 0

    def steps(self) -> Iterator[Json]:
        draw = self._draw
        for name in self._names[: draw.randint(2, 3)]:
            yield self._creation(name)
        yield self._look()
        for _ in range(draw.randint(3, 5)):
            yield from self._edits()
            yield self._look()
        interruption = draw.choice(("kill", "restart"))
        yield {interruption: [*self._edits()]}
        yield self._look()
        for _ in range(draw.randint(1, 3)):
            yield from self._edits()
            yield self._look()
        yield {"restart": [*self._edits()]}
        yield from self._edits()
        yield self._look()
        for name in self._there:
            yield {"delete": f"things/{name}"}
        yield self._look()
        if draw.random() < 0.5:
            yield {"restart": []}
        for name, is_held in self._there.items():
            if is_held:
                patch = {"metadata": {"annotations": {"b": "last"}}}
                yield {"edit": {"of": f"things/{name}", "patch": patch}}
        yield self._look()

    def _look(self) -> Json:
        self._looks += 1
        return {"look": str(self._looks)}

    def _creation(self, name: str) -> Json:
        draw = self._draw
        meta: Json = {"name": name}
        self._there[name] = draw.random() < 0.4
        if self._there[name]:
            meta["finalizers"] = ["example.com/other"]
        if draw.random() < 0.5:
            meta["labels"] = {"a": draw.choice(("x", "y", "z"))}
        spec: Json = {"n": draw.randint(0, 3), "unseen": 0}
        for number in range(self._count):
            if draw.random() < 0.4:
                spec[f"h{number}"] = draw.choice(_MODES)
        if draw.random() < 0.5:
            spec["items"] = draw.sample(_ITEMS, draw.randint(1, 2))
        head = {"apiVersion": "replicas.fnop.dev/v1", "kind": "Thing"}
        return {"create": {**head, "metadata": meta, "spec": spec}}

    def _edits(self) -> Iterator[Json]:
        for name in self._there:
            if self._draw.random() < 0.7:
                yield {"edit": {"of": f"things/{name}", "patch": self._edit()}}

    def _edit(self) -> Json:
        draw = self._draw
        match draw.randint(0, 7):
            case 0 | 1:
                return {"spec": {"n": draw.choice((0, 1, 2, 3, None))}}
            case 2 | 3:
                number = draw.randrange(self._count)
                return {"spec": {f"h{number}": draw.choice(_MODES)}}
            case 4:
                return {"metadata": {"labels": {"a": draw.choice(("x", "y", None))}}}
            case 5:
                notes = {"b": draw.choice(("1", "2", None))}
                return {"metadata": {"annotations": notes}}
            case 6:
                value = draw.choice(({"er": draw.randint(0, 2)}, {"er": None}, None))
                return {"spec": {"deep": value, "unseen": draw.randint(0, 5)}}
            case _:
                items = draw.choice((draw.sample(_ITEMS, draw.randint(1, 3)), None))
                return {"spec": {"items": items}}
