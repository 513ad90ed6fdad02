"""
Repeated attempts.
"""

import pytest

from kgateway.client import backoff
from kgateway.client.backoff import retry


class Time:
    """
    A clock that advances during sleeps.
    """

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(backoff, "time", time)
    return time


class Failing:
    """
    An attempt that fails a number of times, in the given ways, before it succeeds.
    """

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    def __call__(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "done"


def test_the_first_failure_that_is_retried_is_reported(time: Time) -> None:
    """
    Later ones are not, nor one that is not retried.
    """
    reported: list[tuple[Exception, float]] = []
    first, last = ValueError("first"), ValueError("last")
    attempt = Failing(first, ValueError("second"))
    assert retry(attempt, lambda error: 10, lambda error, patience_s: reported.append((error, patience_s))) == "done"
    with pytest.raises(ValueError, match="last"):
        retry(Failing(last), lambda error: 0, lambda error, patience_s: reported.append((error, patience_s)))
    assert reported == [(first, 10)]


def test_pauses_double_until_patience_ends(time: Time) -> None:
    """
    No pause is longer than two seconds, and none reaches beyond the patience. The last failure is raised.
    """
    attempt = Failing(*(OSError(number) for number in range(100)))
    with pytest.raises(OSError, match=r"^9$"):
        retry(attempt, lambda _: 10)
    assert time.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]


def test_an_attempt_succeeds_in_the_end(time: Time) -> None:
    """
    Nothing is awaited after it.
    """
    assert retry(Failing(OSError(), KeyError()), lambda _: 10) == "done"
    assert time.pauses == [0.05, 0.1]


def test_each_failure_has_its_patience(time: Time) -> None:
    """
    It counts from the first attempt. A failure without any is raised at once.
    """
    patience = {OSError: 10.0, KeyError: 0.1, ValueError: 0.0}
    with pytest.raises(KeyError):
        retry(Failing(OSError(), KeyError()), lambda error: patience[type(error)])
    assert time.pauses == [0.05]
    with pytest.raises(ValueError, match="at once"):
        retry(Failing(ValueError("at once")), lambda error: patience[type(error)])
    assert time.pauses == [0.05]


def test_slow_attempts_use_up_patience(time: Time) -> None:
    """
    Not the pauses alone count.
    """

    def slow() -> None:
        time.now += 10
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011, there is no message
        retry(slow, lambda _: 10)
    assert time.pauses == []
