from fnop.testing import PostService


class Bank(PostService):
    keeps_records = True  # a receipt stays when its order is deleted

    def charge(self, customer: str, amount: int) -> str:
        made = self.create({"customer": customer, "amount": amount})
        return str(made["id"])


BANK = Bank("receipt")
CALLS = {"charge": BANK.charge}
