"""
How many examples Hypothesis tries: ten a property by default, `--hypothesis-profile=deep` for five hundred.
"""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.broker.behaviour")  # what is no test module would fail without saying how

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=10, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("deep", max_examples=500, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("default")
