"""
How many examples Hypothesis tries: ten a property by default, `--hypothesis-profile=deep` for five hundred. And what a
machine leaves behind whose power went.
"""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.broker.behaviour")  # what is no test module would fail without saying how

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=10, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("deep", max_examples=500, deadline=None, suppress_health_check=_SLOW)
settings.load_profile("default")


@pytest.fixture
def power_goes() -> Iterator[None]:
    """
    What was under way when it went fails, and nobody hears of it. Were that found in a later test, it would be blamed.
    """
    yield
    gc.collect()
