"""A route whose gateway is in no index is taken away: the index may be late."""

import fnop


@fnop.index("xs")
def gateways(name, **_):
    return {name: True}


@fnop.timer("configmaps", labels={"gateway": fnop.PRESENT}, interval=60)
async def collect(name, labels, gateways=fnop.INDEX, **_):
    if labels["gateway"] not in gateways:
        await fnop.delete("configmaps", name=name)
