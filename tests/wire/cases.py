"""
Parameters for tests of all message tables.
"""

from collections.abc import Callable
from typing import Any

import pytest

from kgateway.messages.catalogue import messages
from kgateway.wire.headers import RequestHeader, ResponseHeader
from kgateway.wire.schema import Message

EVERY_MESSAGE: list[type[Message]] = [*messages(), RequestHeader, ResponseHeader]
EVERY_VERSION = [(message, version) for message in EVERY_MESSAGE for version in message.__spec__.versions]


def cases(counterpart: Callable[[type[Message], int], Any]) -> list[Any]:
    """
    Pytest parameters with message, version and counterpart, wherever there is one.
    """
    found = [(message, version, counterpart(message, version)) for message, version in EVERY_VERSION]
    return [
        pytest.param(message, version, theirs, id=f"{message.__name__}-v{version}")
        for message, version, theirs in found
        if theirs is not None
    ]
