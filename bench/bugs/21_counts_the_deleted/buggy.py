"""Pods by number: users name the ones to delete; a timer removes surplus Pods."""

import fnop


def pod(name, owner):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"owner": owner}},
        "spec": {"containers": [{"name": "main", "image": "ray"}]},
    }


@fnop.index("pods", labels={"owner": fnop.PRESENT})
def workers(labels, name, **_):
    return {labels["owner"]: name}


@fnop.on.create("xs.example.com")
@fnop.on.update("xs.example.com")
async def fill(name, spec, **_):
    victims = spec.get("workersToDelete", ())
    for victim in victims:
        await fnop.delete("pods", name=victim)
    names = (f"{name}-{number}" for number in range(spec["size"] + len(victims)))
    for each in [each for each in names if each not in victims][: spec["size"]]:
        await fnop.adopt(pod(each, name))


@fnop.timer("xs.example.com", interval=60)
async def trim(name, spec, workers=fnop.INDEX, **_):
    running = sorted(workers.get(name, ()))
    for number in range(spec["size"], len(running)):
        await fnop.delete("pods", name=running[number])
