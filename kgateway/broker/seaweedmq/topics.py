"""
The topics of a SeaweedMQ cluster: their partitions as SeaweedMQ has them, and what of Kafka's it has no place for, in a
file of ours beside.

    /topics/kafka/TOPIC/topic.conf        SeaweedMQ's
    /topics/kafka/TOPIC/kgateway.json     ours (kept_topic.py; intents.py while it is made)
    /topics/kafka/.meta/kgateway/         what is of no topic: owners, configs of groups, states of coordinators

A topic without a file of ours was made by others. It is shown as what it is, and gets its file when it is first seen.
One that was restored with SeaweedFS's tools gets both files written anew then, for brokers read them only like that.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from kgateway.broker.seaweed.filer import is_inside
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment, ConfigureTopicResponse
from kgateway.broker.seaweed.retrying import Demand, demand_nothing
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.catching_up import caught_up
from kgateway.broker.seaweedmq.ends import Ends, SettledEnds
from kgateway.broker.seaweedmq.forms.by_name import FORMS
from kgateway.broker.seaweedmq.intents import Intents
from kgateway.broker.seaweedmq.kept_topic import FORMAT, KeptTopic, read_kept_topic
from kgateway.broker.seaweedmq.layout import TOPIC_CONF, Range, check_count, may_be_topic, topic_folder
from kgateway.broker.seaweedmq.messaging import Messaging
from kgateway.broker.seaweedmq.topic_conf import generation_of, read_topic_conf
from kgateway.cluster.view import NewTopic
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.uuids import Uuid

Assignments = Sequence[BrokerPartitionAssignment]

KEPT = "kgateway.json"


class Stored(NamedTuple):
    """
    A topic of the cluster.
    """

    name: str
    kept: KeptTopic


class Seen(NamedTuple):
    """
    A topic that is there, and whether a file of ours is beside it.
    """

    stored: Stored
    is_kept: bool
    apart: Mapping[str, bytes]  # files of it that have their bytes not in their entries, by name


class Topics:
    """
    Those of one namespace.
    """

    _log = Logger()

    def __init__(self, seaweed: Seaweed, namespace: str, demand_ownership: Demand = demand_nothing) -> None:
        self._seaweed = seaweed
        self._demand_ownership = demand_ownership
        self.messaging = Messaging(seaweed, namespace)
        self.namespace = namespace
        self._intents = Intents(seaweed, namespace, demand_ownership)
        self._in_files = Ends(seaweed, namespace)
        self._settled = SettledEnds(seaweed, namespace, self.messaging)

    def folder(self, name: str) -> str:
        """
        Where a topic is.
        """
        return topic_folder(name, self.namespace)

    async def all(self) -> list[Stored]:
        """
        The topics there are, as SeaweedMQ has them; those that cannot be told are named in the log, and left alone.
        """
        found: list[Stored] = []
        for name in await self.names():
            try:
                stored = await self.find(name)
                if stored and await self.is_made_anew(stored):
                    stored = await self.take_over(stored)
            except Malformed as error:
                self._log.error("topic {name} is left alone: {error}", name=name, error=error)
            else:
                found += [stored] if stored else []
        return found

    async def names(self) -> list[str]:
        """
        What there is a folder of, as for a topic.
        """
        entries = await (await self._seaweed.filer()).all_entries(f"/topics/{self.namespace}")
        return [entry.name for entry in entries if entry.is_directory and may_be_topic(entry.name)]

    async def find(self, name: str) -> Stored | None:
        """
        A topic; `None` where there is none. One that others made, or that is half made, gets its file.
        """
        filer, found = await self._seaweed.filer(), await self._found(name, self._settled)
        if found is None:
            await self._intents.forget(name)
            return None
        stored = found.stored
        for file, content in found.apart.items():
            await filer.write(f"{self.folder(name)}/{file}", content, self._demand_ownership)
        if found.is_kept:
            return stored
        path, entry = f"{self.folder(name)}/{KEPT}", filer.small_file(stored.kept.written())
        if not await filer.create(path, entry, only_if_absent=True):
            return await self.find(name)  # somebody has seen it at the same time
        await self._intents.forget(name)
        why = "made by others" if stored.kept.found else "half made when a gateway ended"
        form = stored.kept.form.name
        self._log.info("topic {name} was {why}; it is served as {form}", name=name, why=why, form=form)
        return stored

    async def seen(self, name: str) -> Seen | None:
        """
        A topic as it is there, and nothing is changed; `None` where there is none.
        """
        return await self._found(name, self._in_files)

    async def _found(self, name: str, ends: Ends) -> Seen | None:
        entries = {file: await self._entry(name, file) for file in (KEPT, TOPIC_CONF)}
        if entries[TOPIC_CONF] is None:
            return None
        filer, folder = await self._seaweed.filer(), self.folder(name)
        found = {file: await filer.content_of(f"{folder}/{file}", entry) for file, entry in entries.items() if entry}
        apart = {file: found[file] for file, entry in entries.items() if entry and not is_inside(entry)}
        conf = read_topic_conf(found[TOPIC_CONF])
        if KEPT in found:
            return Seen(Stored(name, read_kept_topic(found[KEPT])), True, apart)
        begun = Stored(name, await self._intents.fulfilled(name, conf) or _theirs(conf))
        return Seen(await self._caught_up(begun, conf, ends), False, apart)

    async def _caught_up(self, stored: Stored, conf: ConfigureTopicResponse, ends: Ends) -> Stored:
        filer, (name, kept) = await self._seaweed.filer(), stored
        return Stored(name, await caught_up(filer, self.namespace, name, kept, conf, ends))

    async def _conf(self, name: str) -> ConfigureTopicResponse | None:
        content = await (await self._seaweed.filer()).content(f"{self.folder(name)}/{TOPIC_CONF}")
        return None if content is None else read_topic_conf(content)

    async def is_there(self, name: str) -> bool:
        """
        Whether there is a topic of this name.
        """
        return await self._entry(name, TOPIC_CONF) is not None

    async def create(self, topic_id: Uuid, new: NewTopic, configs: Mapping[str, str]) -> Stored:
        """
        Make a topic.
        """
        if await self.is_there(new.name):
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic {new.name} already")
        check_count(new.partition_count)
        kept = KeptTopic(topic_id, (), configs, new.internal)
        await self._intents.keep(new.name, kept)
        assignments = await self._configure(new.name, new.partition_count, _ours(kept))
        stored = Stored(new.name, await self._generation(new.name, kept, assignments, []))
        await self.keep(stored)
        await self._intents.forget(new.name)
        return stored

    async def grow(self, stored: Stored, partition_count: int, ends: Sequence[int]) -> Stored:
        """
        Give a topic more partitions: SeaweedMQ makes all of them anew, and each goes on where the one before ended.
        """
        theirs = await self._conf(stored.name) if stored.kept.found else None
        check_count(partition_count)
        assignments = await self._configure(stored.name, partition_count, theirs or _ours(stored.kept))
        grown = Stored(stored.name, await self._generation(stored.name, stored.kept, assignments, ends))
        await self.keep(grown)
        return grown

    async def is_made_anew(self, stored: Stored) -> bool:
        """
        Whether somebody else has given the topic another number of partitions.
        """
        conf = await self._conf(stored.name)
        known = {generation.unix_time_ns for generation in stored.kept.generations}
        return conf is not None and generation_of(conf) not in known

    async def take_over(self, stored: Stored) -> Stored:
        """
        Keep that somebody else has, however often; each partition goes on where the one before ended.
        """
        conf = await self._conf(stored.name)
        if conf is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {stored.name} is there no more")
        grown = await self._caught_up(stored, conf, self._settled)
        await self.keep(grown)
        self._log.warn(
            "topic {name} had {before} partitions, and has {count} now: somebody else has changed it",
            name=stored.name,
            before=stored.kept.partition_count,
            count=grown.kept.partition_count,
        )
        return grown

    async def keep(self, stored: Stored) -> None:
        """
        Write our file of a topic.
        """
        path, content = f"{self.folder(stored.name)}/{KEPT}", stored.kept.written()
        await (await self._seaweed.filer()).write(path, content, self._demand_ownership)

    async def delete(self, name: str) -> None:
        """
        Remove a topic with all there is in it.
        """
        assignments = await self.messaging.assignments(name)
        self._demand_ownership()
        await self.messaging.drop(name, assignments)
        filer = await self._seaweed.filer()
        await filer.delete(self.folder(name), recursive=True, demand=self._demand_ownership)

    async def _entry(self, name: str, file: str) -> Entry | None:
        return await (await self._seaweed.filer()).entry(f"{self.folder(name)}/{file}")

    async def _configure(self, name: str, count: int, conf: ConfigureTopicResponse) -> Assignments:
        """
        Have SeaweedMQ make partitions. It forgets all else there is of the topic that it is not told again.
        """
        self._demand_ownership()
        return await self.messaging.configure_like(conf, name, count)

    async def _generation(self, name: str, kept: KeptTopic, assignments: Assignments, ends: Sequence[int]) -> KeptTopic:
        """
        What is kept once SeaweedMQ has these partitions. A broker that had a topic of this name goes on counting.
        """
        asked = [Deferred.fromCoroutine(self.messaging.next_offset(name, assignment)) for assignment in assignments]
        firsts = await gatherResults(asked, consumeErrors=True)
        parts = [_range(each) for each in assignments]
        return kept.grown(assignments[0].partition.unix_time_ns, parts, ends, firsts)


def _range(assignment: BrokerPartitionAssignment) -> Range:
    return Range(assignment.partition.range_start, assignment.partition.range_stop)


def _ours(kept: KeptTopic) -> ConfigureTopicResponse:
    return ConfigureTopicResponse(message_record_type=kept.form.record_type())


def _theirs(conf: ConfigureTopicResponse) -> KeptTopic:
    """
    What others made. What has columns is read as records, be they written by others.
    """
    form = "record" if conf.HasField("message_record_type") else "plain"
    return KeptTopic(Uuid.random(), (), {**FORMS[form].needs, FORMAT: form}, found=True)
