"""Each check of the object writes the time of the check into its condition."""

import fnop


@fnop.on.event("xs")
def report(spec, patch, now, **_):
    ready = {"type": "Ready", "status": "True" if spec.get("size") else "False"}
    ready["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    patch.status["conditions"] = [ready]
