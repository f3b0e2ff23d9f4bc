"""The time of a condition changes with its status."""

import fnop


@fnop.timer("xs", interval=10)
def report(spec, status, patch, now, **_):
    ready = {"type": "Ready", "status": "True" if spec.get("size") else "False"}
    found = {each["type"]: each for each in status.get("conditions", ())}
    before = found.get("Ready")
    if before is not None and before["status"] == ready["status"]:
        return
    ready["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    patch.status["conditions"] = [ready]
