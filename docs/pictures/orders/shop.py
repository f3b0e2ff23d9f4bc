import fnop


def charge(customer: str, amount: int) -> str:
    """Charge a credit card, and return the number of the receipt."""
    raise NotImplementedError  # a payment service's client stands here


@fnop.on.create("orders.shop.example")
async def pay(spec, **_):
    receipt = await fnop.call(charge, customer=spec["customer"], amount=spec["amount"])
    await fnop.patch(status={"receipt": receipt, "phase": "Paid"})
