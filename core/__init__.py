"""All decisions: pure functions over immutable values.

Start at `fnop.core.operator.step.step`; the heart is
`fnop.core.objects.decide.next_action`.
"""
