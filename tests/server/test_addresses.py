"""
The addresses of listeners that clients without a connection are told.
"""

import pytest

from kgateway.cluster.view import Address
from kgateway.config.settings import read_settings
from kgateway.server.addresses import NOWHERE, reachable

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
def test_reachable_addresses(arguments: list[str], bound: list[Address], told: dict[str, Address]) -> None:
    """
    An advertised address, or the listener's own unless it listens everywhere.
    """
    assert reachable(read_settings(arguments, {}), bound) == told
