"""
The changes below the folder of all topics: files that grow, and topics that are made, changed or deleted.
"""

from collections.abc import Callable, Collection

from kgateway.broker.seaweed.filer.change_feed import ChangeFeed
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, SubscribeMetadataResponse
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF, log_second, namespace_folder


class TopicFeed:
    def __init__(
        self,
        gateway: GatewayRuntime,
        grown: Callable[[str, Entry], None],
        changed: Callable[[str], None],
        lost: Callable[[], None],
        names: Collection[str] = (TOPIC_CONF,),
    ) -> None:
        self._folder = namespace_folder(gateway.namespace)
        self._grown = grown  # called with the folder of a log file, and its entry
        self._topic_changed = (
            changed  # called with the name of the folder, of a topic or another, if a file is in `names`
        )
        self._names = names
        seaweed = gateway.seaweed
        self._feed = ChangeFeed(seaweed.filer, f"{self._folder}/", seaweed.retries, self._changed, lost, gateway.client)

    async def start(self) -> None:
        """
        Fires when every change from now on will be reported.
        """
        await self._feed.start()

    def stop(self) -> None:
        self._feed.stop()

    def _changed(self, change: SubscribeMetadataResponse) -> None:
        entry = change.event_notification.new_entry
        if log_second(entry.name) is not None:
            self._grown(change.directory, entry)
        elif entry.name in self._names or change.event_notification.old_entry.name in self._names:
            self._topic_changed(change.directory.removeprefix(f"{self._folder}/"))
