"""
Topics come, change and go: first in the journal, then for everybody to see, and one change of a name after the other.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.partition_folder import folder_of, put_away, remove_deleted
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.stored_topics import stored
from kgateway.broker.log.topic_journal import TopicJournal
from kgateway.broker.lone import being_changed
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError

_JOURNAL = "the topic journal"


class TopicChanges:
    """
    Keeps changes of topics in the journal and in the folder; who shows them is the broker.
    """

    _log = Logger()

    def __init__(self, path: Path, journal: TopicJournal, start_number: int, parts: LogParts) -> None:
        self._path = path
        self._journal = journal
        self._start_number = start_number
        self._parts = parts
        self._changing: set[str] = set()

    @contextmanager
    def one_at_a_time(self, name: str, refusal: Callable[[str], KafkaError] = being_changed) -> Iterator[None]:
        """
        Whoever comes while a topic of this name comes, goes or is changed is refused. What the disk refuses meanwhile
        is a KAFKA_STORAGE_ERROR.
        """
        if name in self._changing:
            raise refusal(name)
        self._changing.add(name)
        try:
            yield
            self._parts.storage.worked(_JOURNAL)
        except OSError as error:
            self._parts.storage.failed(_JOURNAL, error)
            reason = f"topic {name} cannot be changed: {plain(error)}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason) from None
        finally:
            self._changing.discard(name)

    async def keep(self, topic: Topic) -> None:
        """
        The topic, new or changed, will be there after a restart.
        """
        await self._parts.in_thread(partial(self._journal.put, stored(topic, self._start_number)))

    def keep_now(self, topic: Topic) -> None:
        """
        The same, with everybody waiting for the disk.
        """
        self._journal.put(stored(topic, self._start_number))

    async def forget(self, topic: Topic) -> None:
        """
        The topic will not be there after a restart.
        """
        await self._parts.in_thread(partial(self._journal.delete, topic.id))

    async def clear(self, topic: Topic) -> None:
        """
        Free the folders of a topic that is forgotten, for good, before its name is; and let the files go later.
        """
        await self._parts.in_thread(partial(self._put_away, topic))
        self.remove_deleted()

    def remove_deleted(self) -> None:
        """
        Begin to remove the files of topics that are gone.
        """
        self._parts.in_thread(partial(remove_deleted, self._parts.files.disk, self._path)).addErrback(self._complain)

    def _put_away(self, topic: Topic) -> None:
        disk = self._parts.files.disk
        names = disk.names(self._path)
        for index in range(len(topic.partitions)):
            folder = folder_of(self._path, topic, index)
            if folder.name in names:
                put_away(disk, folder, topic.id)
        disk.sync_folder(self._path)

    def _complain(self, failure: Failure) -> None:
        self._log.failure("files of deleted topics cannot be removed", failure)
