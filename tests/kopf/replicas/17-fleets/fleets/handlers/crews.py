"""The same handlers for each kind, declared in a loop; and fields of several kinds."""

import functools

import kopf

from ..decorators import announced, only, span, spans  # noqa: TID252
from ._kinds import GROUP, KINDS, is_ours


@announced
async def hire(what, *, spec, patch, param, logger, resource, **_):
    if spec["crew"] < 0:
        raise kopf.PermanentError(f"{spec['crew']} people do not sail")
    patch.status["wages"] = spec["crew"] * param["pay"]
    logger.info(f"{what}: {spec['crew']} people for {resource.plural}")
    return {"kind": resource.kind, "people": spec["crew"]}


for plural, terms in KINDS.items():
    for cause in (kopf.on.create, kopf.on.update, kopf.on.resume):
        cause(GROUP, plural, id="hire", param=terms)(functools.partial(hire, plural))


@kopf.on.field("ships", field="spec.crew", param="ship")
@kopf.on.field("docks", field="spec.crew", param="dock")
@span("crew")
def crew_changed(old, new, param, logger, **_):
    logger.info(f"{param}: crew {old} -> {new}; {'crew' in spans}")
    return f"{old}->{new}"


@kopf.on.update(is_ours, field="metadata.labels.harbour", id="moved")
@only("old", "new", "name", "memo", "logger")
async def moved(old, new, name, memo, logger):
    memo.harbour[name] = new
    logger.info(f"from {old} to {new}")


@kopf.on.event(is_ours, labels={"harbour": kopf.PRESENT})
@only()
async def anchored(name, labels, memo, type):
    if type == "DELETED":
        memo.harbour.pop(name, None)
    else:
        memo.harbour.setdefault(name, labels["harbour"])
