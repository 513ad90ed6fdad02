"""
The configs of groups and brokers, as a file in the filer.
"""

from kgateway.broker.config_changes import ConfigsNotSaved
from kgateway.broker.overrides_file import ConfigsDamaged, UnknownConfigLine, decode_overrides, encode_overrides
from kgateway.broker.seaweed.calls.retries import FilerRefused, Precondition, no_precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.cluster.config_resource import AllOverrides
from kgateway.wire.errors import KafkaError

CONFIGS = "configs"


class ResourceConfigs:
    def __init__(self, seaweed: SeaweedCluster, folder: str, check_lease: Precondition = no_precondition) -> None:
        self._seaweed = seaweed
        self._check_lease = check_lease
        self._path = f"{folder}/{CONFIGS}"

    async def read(self) -> AllOverrides:
        """
        Raises FilerRefused if the file cannot be read.
        """
        content = await (await self._seaweed.filer()).content(self._path)
        if content is None:
            return {}
        try:
            return decode_overrides(content)
        except ConfigsDamaged:
            raise FilerRefused(
                self._path, "is damaged; remove it: groups and brokers then have no configs of their own"
            ) from None
        except UnknownConfigLine as line:
            problem = f"has {line}, which this version of kgateway does not know; start a newer one"
            raise FilerRefused(self._path, problem) from None

    async def store(self, overrides: AllOverrides) -> None:
        try:
            filer = await self._seaweed.filer()
            await filer.write(self._path, encode_overrides(overrides), self._check_lease)
        except (RpcError, FilerRefused, KafkaError) as error:
            raise ConfigsNotSaved(str(error)) from None
