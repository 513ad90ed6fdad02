"""
Tells what changes below the folder of all topics: files that grow, and topics that come and go.
"""

from collections.abc import Callable, Collection

from kgateway.broker.seaweed.feed import Feed
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, SubscribeMetadataResponse
from kgateway.broker.seaweedmq.layout import TOPIC_CONF, log_second, namespace_folder
from kgateway.broker.seaweedmq.site import Site


class Watching:
    """
    Of one namespace.
    """

    def __init__(
        self,
        site: Site,
        grown: Callable[[str, Entry], None],
        changed: Callable[[str], None],
        lost: Callable[[], None],
        names: Collection[str] = (TOPIC_CONF,),
    ) -> None:
        self._folder = namespace_folder(site.namespace)
        self._grown = grown  # told of a log file: its folder, and its entry
        self._topic_changed = changed  # told of a topic's name, or of another folder with a file of these names
        self._names = names
        seaweed = site.seaweed
        self._feed = Feed(seaweed.filer, f"{self._folder}/", seaweed.retrying, self._changed, lost, site.client)

    async def start(self) -> None:
        """
        All that is done from now on is told.
        """
        await self._feed.start()

    def stop(self) -> None:
        """
        Tell nothing more.
        """
        self._feed.stop()

    def _changed(self, change: SubscribeMetadataResponse) -> None:
        entry = change.event_notification.new_entry
        if log_second(entry.name) is not None:
            self._grown(change.directory, entry)
        elif entry.name in self._names or change.event_notification.old_entry.name in self._names:
            self._topic_changed(change.directory.removeprefix(f"{self._folder}/"))
