"""A route is removed if its gateway is not in the index: the index may be late."""

import fnop


@fnop.index("xs")
def gateways(name, **_):
    return {name: True}


@fnop.timer("configmaps", labels={"gateway": fnop.PRESENT}, interval=60)
async def collect(name, labels, gateways=fnop.INDEX, **_):
    if labels["gateway"] not in gateways:
        await fnop.delete("configmaps", name=name)
