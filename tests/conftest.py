"""What all tests share."""

from hypothesis import HealthCheck, settings

# The first draw of a text strategy builds its tables, which is slow and no fault
# of the test; timings of single examples say nothing on a shared machine.
settings.register_profile(
    "fnop", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fnop")
