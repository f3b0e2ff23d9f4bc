"""The work queue agrees with a naive model."""

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fnop.core.values.workqueue import EMPTY, WorkQueue

keys = st.integers(0, 6)
times = st.integers(0, 20).map(float)


class WorkQueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue: WorkQueue = EMPTY
        self.model: dict[int, tuple[float, int]] = {}
        self.serial = 0
        self.now = 0.0

    @rule(key=keys, at=times)
    def add(self, key: int, at: float) -> None:
        self.queue = self.queue.add(key, at)
        if key not in self.model or at < self.model[key][0]:
            self.model[key] = (at, self.serial)
            self.serial += 1

    @rule(key=keys, later=st.sampled_from([0.0, 1.0, 3.0]))
    def add_last(self, key: int, later: float) -> None:
        self.now += later
        self.queue = self.queue.add_last(key, self.now)
        if key not in self.model or self.now < self.model[key][0]:
            self.model[key] = (self.now, self.serial)
            self.serial += 1

    @rule(now=times)
    def take(self, now: float) -> None:
        due = [key for key, (at, _) in self.model.items() if at <= now]
        expected = min(due, key=self.model.__getitem__, default=None)
        before = self.queue
        found, self.queue = self.queue.take(now)
        assert found == expected
        if expected is not None:
            del self.model[expected]
            assert expected in before.due  # the old value is untouched

    @rule(key=keys)
    def discard(self, key: int) -> None:
        self.queue = self.queue.discard(key)
        self.model.pop(key, None)

    @invariant()
    def agrees(self) -> None:
        assert len(self.queue) == len(self.model)
        assert list(self.queue) == sorted(self.model, key=self.model.__getitem__)
        first = min((at for at, _ in self.model.values()), default=None)
        assert self.queue.next_due() == first

    @invariant()
    def is_bounded(self) -> None:
        assert self.queue.size <= 2 * len(self.model) + 64 + 1


TestWorkQueue = WorkQueueMachine.TestCase
TestWorkQueue.settings = settings(max_examples=60, stateful_step_count=40)
