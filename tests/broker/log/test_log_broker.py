"""
The embedded log: what every broker does, and what is its own.
"""

from collections.abc import Callable
from itertools import count

import pytest

from kgateway.interfaces import IBroker
from tests.broker.administering import Administering
from tests.broker.altering import Altering
from tests.broker.behaviour import Behaviour, Make
from tests.broker.deletions import LettingGo
from tests.broker.log.making import log_broker


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """
    Each broker has a folder of its own.
    """
    numbers, folder = count(), tmp_path_factory.mktemp("logs")

    def made(now_ms: Callable[[], int], expiry_ms: int) -> IBroker:
        return log_broker(folder / str(next(numbers)), now_ms=now_ms, producer_expiry_ms=expiry_ms)

    return made


class TestLog(Behaviour, LettingGo, Altering, Administering):
    """
    What every broker does.
    """
