"""
The catalog: the topics of a SeaweedMQ cluster, their partitions as SeaweedMQ has them, and our own files beside
them, for what SeaweedMQ cannot store.

    /topics/kafka/TOPIC/topic.conf                SeaweedMQ's
    /topics/kafka/TOPIC/kgateway.json             ours (topic_file.py)
    /topics/kafka/TOPIC/kgateway-intent.json      ours, while the topic is made: what it is to be. It is written before
                                                  SeaweedMQ makes the topic, so that a half made one can be finished
    /topics/kafka/.meta/kgateway/                 what belongs to no topic: owners, configs of groups, states of
                                                  coordinators

A folder with nothing but an intent is no topic. A topic without our file was made by another program, or by a
gateway that ended before it wrote the file, which an intent tells. The former is served in the format that its messages
have; both get the file when they are first found. A topic that was restored with SeaweedFS's tools gets both files
written again then, because brokers read them only inline.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import FilerRefused, Precondition, no_precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import is_inline
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment, ConfigureTopicResponse
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweedmq.formats.registry import FORMAT, FORMATS
from kgateway.broker.seaweedmq.layout.kafka_errors import CLUSTER_ERRORS
from kgateway.broker.seaweedmq.layout.topic_conf import generation_of, ranges_of, read_topic_conf
from kgateway.broker.seaweedmq.layout.topic_file import TopicFile, read_intent, read_topic_file
from kgateway.broker.seaweedmq.layout.topic_paths import TOPIC_CONF, RingRange, check_count, may_be_topic, topic_folder
from kgateway.broker.seaweedmq.topics.broker_rpc import GROUP, BrokerRpc
from kgateway.broker.seaweedmq.topics.generation_ends import FlushedGenerationEnds, GenerationEnds, Newest
from kgateway.cluster.view import NewTopic
from kgateway.log_messages import (
    PARTITIONS_REMOVED,
    TOPIC_CHANGED_ELSEWHERE,
    TOPIC_LEFT_ALONE,
    TOPIC_NOT_RESTORED,
    TOPIC_REDUCED,
)
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.uuids import Uuid

INTENT = "kgateway-intent.json"


class TopicIntents:
    def __init__(self, seaweed: SeaweedCluster, namespace: str, check_lease: Precondition) -> None:
        self._seaweed = seaweed
        self._namespace = namespace
        self._check_lease = check_lease

    async def store(self, name: str, intended: TopicFile) -> None:
        await (await self._seaweed.filer()).write(self._path(name), intended.encoded(), self._check_lease)

    async def fulfilled(self, name: str, conf: ConfigureTopicResponse) -> TopicFile | None:
        """
        The intent of the topic that SeaweedMQ has; `None` if there is none, or if another topic was made.
        """
        content = await (await self._seaweed.filer()).content(self._path(name))
        intended = None if content is None else read_intent(content)
        is_it = intended and conf.message_record_type == (intended.format.record_type() or RecordType())
        return intended if is_it else None

    async def forget(self, name: str) -> None:
        """
        Delete the intent: the topic is there, or never will be. Then its folder is deleted, too.
        """
        filer = await self._seaweed.filer()
        if not await filer.entry(self._path(name)):
            return
        await filer.delete(self._path(name), precondition=self._check_lease)
        if not await filer.entries(topic_folder(name, self._namespace), limit=1):
            with suppress(FilerRefused):  # it is not empty any more
                await filer.delete(topic_folder(name, self._namespace), precondition=self._check_lease)

    def _path(self, name: str) -> str:
        return f"{topic_folder(name, self._namespace)}/{INTENT}"


Assignments = Sequence[BrokerPartitionAssignment]

TOPIC_FILE = "kgateway.json"


class StoredTopic(NamedTuple):
    name: str
    file: TopicFile


class CatalogTopic(NamedTuple):
    """
    A topic as it is in the cluster, and whether a file of ours is beside it.
    """

    stored: StoredTopic
    has_topic_file: bool
    not_inline: Mapping[str, bytes]  # files whose bytes are not inline, by name


class TopicCatalog:
    _log = Logger()

    def __init__(
        self, seaweed: SeaweedCluster, namespace: str, check_lease: Precondition = no_precondition, client: str = GROUP
    ) -> None:
        self._seaweed = seaweed
        self._check_lease = check_lease
        self.rpc = BrokerRpc(seaweed, namespace, client)
        self.namespace = namespace
        self._intents = TopicIntents(seaweed, namespace, check_lease)
        self._file_ends = GenerationEnds(seaweed, namespace)
        self._flushed_ends = FlushedGenerationEnds(seaweed, namespace, self.rpc)

    def folder(self, name: str) -> str:
        return topic_folder(name, self.namespace)

    async def load_all(self) -> list[StoredTopic]:
        """
        Read all topics, adopt those of other programs, and store what others have changed. Topics that cannot be read
        are logged, and left alone.
        """
        found: list[StoredTopic] = []
        for name in await self.names():
            try:
                stored = await self.load(name)
            except Malformed as error:
                self._log.error(TOPIC_LEFT_ALONE, name=name, error=error)
            else:
                found += [stored] if stored else []
        return found

    async def names(self) -> list[str]:
        entries = await (await self._seaweed.filer()).all_entries(f"/topics/{self.namespace}")
        return [entry.name for entry in entries if entry.is_directory and may_be_topic(entry.name)]

    async def load(self, name: str) -> StoredTopic | None:
        """
        Adopt a topic, with the partitions that SeaweedMQ has now. Returns `None` if there is no such topic.
        """
        stored = await self.adopt(name)
        if stored and await self.is_recreated(stored):
            return await self.store_recreated(stored)
        return stored

    async def adopt(self, name: str) -> StoredTopic | None:
        """
        Read a topic, and write what it lacks: a topic that others made, or that is half made, gets its file; what is
        left of a deleted one is removed. Returns `None` if there is no such topic.
        """
        filer, found = await self._seaweed.filer(), await self._found(name, self._flushed_ends)
        if found is None:
            await self._intents.forget(name)
            return None
        stored = found.stored
        for file, content in found.not_inline.items():
            await filer.write(f"{self.folder(name)}/{file}", content, self._check_lease)
        if found.has_topic_file:
            return stored
        path, entry = f"{self.folder(name)}/{TOPIC_FILE}", filer.small_file(stored.file.encoded())
        if not await filer.create_here(path, entry):
            return await self.adopt(name)  # another gateway has adopted it at the same time
        await self._intents.forget(name)
        why = "created by another program" if stored.file.is_foreign else "created partly when a gateway ended"
        message_format = stored.file.format.name
        self._log.info("topic {name} was {why}; it is served as {kind}", name=name, why=why, kind=message_format)
        return stored

    async def read(self, name: str) -> CatalogTopic | None:
        """
        A topic as it is in the cluster, which is not changed; `None` if there is none.
        """
        return await self._found(name, self._file_ends)

    async def _found(self, name: str, ends: GenerationEnds) -> CatalogTopic | None:
        entries = {file: await self._entry(name, file) for file in (TOPIC_FILE, TOPIC_CONF)}
        if entries[TOPIC_CONF] is None:
            return None
        filer, folder = await self._seaweed.filer(), self.folder(name)
        found = {file: await filer.content_of(f"{folder}/{file}", entry) for file, entry in entries.items() if entry}
        not_inline = {file: found[file] for file, entry in entries.items() if entry and not is_inline(entry)}
        conf = read_topic_conf(found[TOPIC_CONF])
        if TOPIC_FILE in found:
            return CatalogTopic(StoredTopic(name, read_topic_file(found[TOPIC_FILE])), True, not_inline)
        begun = StoredTopic(name, await self._intents.fulfilled(name, conf) or _theirs(conf))
        return CatalogTopic(await self._with_newest(begun, conf, ends), False, not_inline)

    async def _with_newest(
        self, stored: StoredTopic, conf: ConfigureTopicResponse, ends: GenerationEnds
    ) -> StoredTopic:
        """
        The topic with the partitions that SeaweedMQ has. Each continues where the one of its index ended.
        """
        (name, file), newest = stored, Newest(generation_of(conf), ranges_of(conf))
        offsets = await ends.ends(name, file, newest)
        # All messages of a topic that others made are shown; its first message may have any offset.
        firsts = await ends.firsts(name, file, newest) if file.generations or not file.is_foreign else ()
        return StoredTopic(name, file.grown(newest.unix_time_ns, newest.parts, offsets, firsts))

    async def _conf(self, name: str) -> ConfigureTopicResponse | None:
        content = await (await self._seaweed.filer()).content(f"{self.folder(name)}/{TOPIC_CONF}")
        return None if content is None else read_topic_conf(content)

    async def is_there(self, name: str) -> bool:
        return await self._entry(name, TOPIC_CONF) is not None

    async def create(self, topic_id: Uuid, new: NewTopic, configs: Mapping[str, str]) -> StoredTopic:
        if await self.is_there(new.name):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {new.name} already exists")
        check_count(new.partition_count)
        file = TopicFile(topic_id, (), configs, new.internal)
        await self._intents.store(new.name, file)
        assignments = await self._configure(new.name, new.partition_count, _ours(file))
        stored = StoredTopic(new.name, await self._generation(new.name, file, assignments, []))
        await self.store(stored)
        await self._intents.forget(new.name)
        return stored

    async def grow(self, stored: StoredTopic, partition_count: int, ends: Sequence[int]) -> StoredTopic:
        """
        Give a topic more partitions: SeaweedMQ recreates all of them, and each continues where the one before ended.
        """
        theirs = await self._conf(stored.name) if stored.file.is_foreign else None
        check_count(partition_count)
        assignments = await self._configure(stored.name, partition_count, theirs or _ours(stored.file))
        grown = StoredTopic(stored.name, await self._generation(stored.name, stored.file, assignments, ends))
        await self.store(grown)
        return grown

    async def is_recreated(self, stored: StoredTopic) -> bool:
        """
        Whether another program has recreated the partitions of the topic since we stored them, or has taken from a
        topic of ours what it needs.
        """
        conf = await self._conf(stored.name)
        return conf is not None and (_is_new(stored.file, conf) or _is_reduced(stored.file, conf))

    async def store_recreated(self, stored: StoredTopic) -> StoredTopic:
        """
        Store the partitions that another program has recreated; each continues where the one before ended. A topic of
        ours gets back the partitions and columns that it has lost.
        """
        recreated, conf = await self._store_newest(stored)
        before, count = stored.file.assigned_count, recreated.file.assigned_count
        if recreated is not stored:
            self._log.warn(TOPIC_CHANGED_ELSEWHERE, name=stored.name, before=before, count=count)
        if not _is_reduced(recreated.file, conf):
            if count < recreated.file.partition_count:
                self._log.warn(PARTITIONS_REMOVED, name=stored.name, count=count, all=recreated.file.partition_count)
            return recreated
        self._log.warn(TOPIC_REDUCED, name=stored.name, count=recreated.file.partition_count)
        try:
            await self._configure(stored.name, recreated.file.partition_count, _ours(recreated.file))
            restored, _ = await self._store_newest(recreated)
        except CLUSTER_ERRORS as error:
            self._log.warn(TOPIC_NOT_RESTORED, name=stored.name, error=error)
            return recreated
        return restored

    async def _store_newest(self, stored: StoredTopic) -> tuple[StoredTopic, ConfigureTopicResponse]:
        """
        Store the partitions that SeaweedMQ has, unless they are known.
        """
        conf = await self._conf(stored.name)
        if conf is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {stored.name} does not exist any more")
        if not _is_new(stored.file, conf):
            return stored, conf
        recreated = await self._with_newest(stored, conf, self._flushed_ends)
        await self.store(recreated)
        return recreated, conf

    async def store(self, stored: StoredTopic) -> None:
        path, content = f"{self.folder(stored.name)}/{TOPIC_FILE}", stored.file.encoded()
        await (await self._seaweed.filer()).write(path, content, self._check_lease)

    async def delete(self, name: str) -> None:
        assignments = await self.rpc.assignments(name)
        self._check_lease()
        await self.rpc.drop(name, assignments)
        filer = await self._seaweed.filer()
        await filer.delete(self.folder(name), recursive=True, precondition=self._check_lease)

    async def _entry(self, name: str, file: str) -> Entry | None:
        return await (await self._seaweed.filer()).entry(f"{self.folder(name)}/{file}")

    async def _configure(self, name: str, count: int, conf: ConfigureTopicResponse) -> Assignments:
        """
        Have SeaweedMQ make partitions. It forgets whatever else of the topic is not sent again.
        """
        self._check_lease()
        return await self.rpc.configure_like(conf, name, count)

    async def _generation(self, name: str, file: TopicFile, assignments: Assignments, ends: Sequence[int]) -> TopicFile:
        """
        The topic file once SeaweedMQ has these partitions. A broker that once had a topic of this name continues its
        numbering.
        """
        asked = [Deferred.fromCoroutine(self.rpc.next_offset(name, assignment)) for assignment in assignments]
        firsts = await gatherResults(asked, consumeErrors=True)
        parts = [_range(each) for each in assignments]
        return file.grown(assignments[0].partition.unix_time_ns, parts, ends, firsts)


def _range(assignment: BrokerPartitionAssignment) -> RingRange:
    return RingRange(assignment.partition.range_start, assignment.partition.range_stop)


def _is_new(file: TopicFile, conf: ConfigureTopicResponse) -> bool:
    return generation_of(conf) not in {generation.unix_time_ns for generation in file.generations}


def _is_reduced(file: TopicFile, conf: ConfigureTopicResponse) -> bool:
    """
    Whether a topic of ours lacks partitions, which Kafka's topics never lose, or its columns. What others have made
    is theirs.
    """
    has_columns = conf.HasField("message_record_type") or file.format.record_type() is None
    has_all = has_columns and len(conf.broker_partition_assignments) >= file.partition_count
    return not (file.is_foreign or has_all)


def _ours(file: TopicFile) -> ConfigureTopicResponse:
    return ConfigureTopicResponse(message_record_type=file.format.record_type())


def _theirs(conf: ConfigureTopicResponse) -> TopicFile:
    """
    The file of a topic that others made. What has columns is read as records, even if others wrote them.
    """
    message_format = "record" if conf.HasField("message_record_type") else "plain"
    return TopicFile(Uuid.random(), (), {**FORMATS[message_format].needs, FORMAT: message_format}, is_foreign=True)
