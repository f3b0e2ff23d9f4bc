import kopf

GROUP = "replicas.fnop.dev"
KINDS = {"ships": {"pay": 2}, "docks": {"pay": 3}}


def is_ours(resource: kopf.Resource) -> bool:
    """A selector that is a function, for all kinds of the fleet."""
    return resource.group == GROUP and "fleet" in resource.categories
