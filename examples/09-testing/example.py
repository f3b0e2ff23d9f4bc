"""An operator of volumes, and its tests: a decision, a story, a law."""

import urllib.request
from typing import Any

import fnop

SIZES = {"Gi": 1, "Ti": 1024}


def gigabytes(size: str) -> int:
    """Convert a size such as `2Ti` into Gi; any other text is a permanent error."""
    number, unit = size[:-2], size[-2:]
    if unit not in SIZES or not number.isdecimal() or not int(number):
        raise fnop.PermanentError(f"spec.size must be like 1Gi or 2Ti, not {size!r}")
    return int(number) * SIZES[unit]


def archive(volume: str, token: str) -> str:
    """Keep what is on a volume; runs outside, so tests give a model of it."""
    url = f"https://archive.example.com/{volume}?token={token}"
    with urllib.request.urlopen(url, data=b"") as response:
        return str(response.read().decode())


@fnop.on.create("fnopexamples")
async def claim(name: str, spec: fnop.Spec, **_: Any) -> dict[str, str]:
    wanted = f"{gigabytes(spec['size'])}Gi"
    if "secret" in spec and await fnop.get("secrets", name=spec["secret"]) is None:
        raise fnop.TemporaryError(f"no secret {spec['secret']} yet", delay=5)
    volume = await fnop.adopt(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{name}-data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": wanted}},
            },
        }
    )
    await fnop.event("Claimed", f"{volume.name} asks for {wanted}")
    return {"volume": volume.name}


@fnop.on.update("fnopexamples", field="spec.size")
async def resize(name: str, old: str, new: str, **_: Any) -> fnop.Effect:
    wanted = gigabytes(new)
    volume = await fnop.get("persistentvolumeclaims", name=f"{name}-data")
    if volume is None or wanted < gigabytes(old):
        raise fnop.PermanentError(f"a volume of {old} cannot become one of {new}")
    if volume.status.get("phase") != "Bound":
        return fnop.again(after=10, because="the volume is not bound yet")
    requests = {"storage": f"{wanted}Gi"}
    return fnop.patch(volume, spec={"resources": {"requests": requests}})


@fnop.on.delete("fnopexamples", when=lambda spec, **_: spec.get("archived", False))
async def keep(name: str, uid: str, logger: fnop.Logger, **_: Any) -> None:
    place = await fnop.call(archive, volume=f"{name}-data", token=uid)
    logger.info("%s is kept at %s", name, place)
