"""
Where clients reach the listeners, as far as they can be told when they are not connected.
"""

import pytest

from kgateway.cluster.view import Address
from kgateway.config.settings import read_settings
from kgateway.server.addresses import NOWHERE, reached

NEAR = Address("127.0.0.1", 9092)


@pytest.mark.parametrize(
    ("arguments", "bound", "told"),
    [
        ([], [NEAR], {"plaintext": NEAR}),
        ([], [Address("0.0.0.0", 9092)], {}),
        ([], [Address("::", 9092)], {}),
        ([], [NOWHERE], {}),
        (["--advertise", "gw:9"], [Address("0.0.0.0", 9092)], {"plaintext": Address("gw", 9)}),
        (["--advertise", "gw:9"], [NEAR], {"plaintext": Address("gw", 9)}),
        (
            ["--listen", "in=tcp:1", "--listen", "out=tcp:2", "--advertise", "out=gw:9"],
            [NEAR, Address("0.0.0.0", 2)],
            {"in": NEAR, "out": Address("gw", 9)},
        ),
    ],
)
def test_reached(arguments: list[str], bound: list[Address], told: dict[str, Address]) -> None:
    """
    What is advertised, or where a listener listens unless that is everywhere.
    """
    assert reached(read_settings(arguments, {}), bound) == told
