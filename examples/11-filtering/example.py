"""Which objects a handler is for: labels, annotations, fields, owners, functions."""

from typing import Any

import fnop


def is_short(value: str | None) -> bool:
    return value is not None and len(value) < 10


def is_first(name: str) -> bool:
    return name.endswith("-1")


def is_secret(spec: fnop.Spec) -> bool:
    return "secret" in spec


@fnop.on.create("fnopexamples", labels={"somelabel": "somevalue"})
def by_label(patch: fnop.Patch, **_: Any) -> None:
    patch.status["by_label"] = True


@fnop.on.create("fnopexamples", labels={"somelabel": fnop.ABSENT})
def by_absence(patch: fnop.Patch, **_: Any) -> None:
    patch.status["by_absence"] = True


@fnop.on.create("fnopexamples", annotations={"someannotation": is_short})
def by_annotation(patch: fnop.Patch, **_: Any) -> None:
    patch.status["by_annotation"] = True


@fnop.on.create("fnopexamples", when=fnop.all_([is_first, fnop.not_(is_secret)]))
def by_function(patch: fnop.Patch, **_: Any) -> None:
    patch.status["by_function"] = True


@fnop.on.update("fnopexamples", field="spec.field", old="value", new="changed")
def by_change(patch: fnop.Patch, **_: Any) -> None:
    patch.status["by_change"] = True


@fnop.on.create("configmaps", owner="fnopexamples")
def by_owner(owner: fnop.Target | None, name: str, **_: Any) -> fnop.Effect:
    return fnop.patch(owner, status={"child": name})


@fnop.on.create("fnopexamples")
def child(**_: Any) -> fnop.Effect:
    return fnop.adopt({"apiVersion": "v1", "kind": "ConfigMap"}, role="child")
