import fnop


@fnop.reconcile("orders.shop.example", owns=["configmaps"])
def print_slip(spec, name, children, **_):
    slip = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-slip"},
        "data": {"text": f"{spec['customer']} pays {spec['amount']}"},
    }
    printed = f"{name}-slip" in children["configmaps"]
    reason = "SlipPrinted" if printed else "SlipMissing"
    return fnop.desired([slip], conditions=fnop.condition("Ready", printed, reason))
