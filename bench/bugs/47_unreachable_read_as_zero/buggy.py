"""Nodes that could not be listed count as zero."""

import fnop


def list_nodes(cluster):
    """Return the names of the nodes of another cluster."""
    raise NotImplementedError("a cluster that this example does not have")


@fnop.timer("xs", interval=10)
async def watch_over(name, status, patch, **_):
    try:
        nodes = await fnop.call(list_nodes, cluster=name)
    except fnop.CallFailed:
        nodes = []
    patch.status["ready"] = len(nodes)
    if not nodes and status.get("ready"):
        patch.status["phase"] = "Failed"
    elif nodes and "phase" not in status:
        patch.status["phase"] = "Running"
