"""
What was set for groups and other resources, as a file in the filer.
"""

from kgateway.broker import config_lines
from kgateway.broker.config_changes import NotKept
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.cluster.config_resource import AllOverrides
from kgateway.wire.errors import KafkaError

CONFIGS = "configs"


class KeptConfigs:
    """
    Those of one namespace.
    """

    def __init__(self, seaweed: Seaweed, folder: str, demand_ownership: Demand = demand_nothing) -> None:
        self._seaweed = seaweed
        self._demand_ownership = demand_ownership
        self._path = f"{folder}/{CONFIGS}"

    async def read(self) -> AllOverrides:
        """
        What is set; FilerRefused where the file cannot be read.
        """
        content = await (await self._seaweed.filer()).content(self._path)
        if content is None:
            return {}
        try:
            return config_lines.read(content)
        except config_lines.Damaged:
            raise FilerRefused(
                self._path, "is damaged; remove it, and nothing is set for any group or broker"
            ) from None
        except config_lines.Unknown as line:
            problem = f"has {line}, which this kgateway does not know; start a newer one"
            raise FilerRefused(self._path, problem) from None

    async def keep(self, overrides: AllOverrides) -> None:
        """
        Let these take the place of the others.
        """
        try:
            filer = await self._seaweed.filer()
            await filer.write(self._path, config_lines.written(overrides), self._demand_ownership)
        except (RpcError, FilerRefused, KafkaError) as error:
            raise NotKept(str(error)) from None
