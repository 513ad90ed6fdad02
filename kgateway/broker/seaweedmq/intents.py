"""
What a topic is to be, kept beside it before SeaweedMQ makes it: whoever finds it half made can finish it.

    /topics/kafka/TOPIC/kgateway-intent.json     a line as that of kept_topic.py, without generations

A folder that has nothing else is no topic.
"""

from contextlib import suppress

from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse
from kgateway.broker.seaweed.protos.schema_pb2 import RecordType
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Demand
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.kept_topic import KeptTopic, read_intended_topic
from kgateway.broker.seaweedmq.layout import topic_folder

INTENT = "kgateway-intent.json"


class Intents:
    """
    Those of one namespace.
    """

    def __init__(self, seaweed: Seaweed, namespace: str, demand_ownership: Demand) -> None:
        self._seaweed = seaweed
        self._namespace = namespace
        self._demand_ownership = demand_ownership

    async def keep(self, name: str, intended: KeptTopic) -> None:
        """
        Write what a topic is to be.
        """
        await (await self._seaweed.filer()).write(self._path(name), intended.written(), self._demand_ownership)

    async def fulfilled(self, name: str, conf: ConfigureTopicResponse) -> KeptTopic | None:
        """
        What the topic that SeaweedMQ has was to be; `None` where nobody has kept it, or another one was made.
        """
        content = await (await self._seaweed.filer()).content(self._path(name))
        intended = None if content is None else read_intended_topic(content)
        is_it = intended and conf.message_record_type == (intended.form.record_type() or RecordType())
        return intended if is_it else None

    async def forget(self, name: str) -> None:
        """
        The topic is there, or never will be: then its folder goes, too.
        """
        filer = await self._seaweed.filer()
        if not await filer.entry(self._path(name)):
            return
        await filer.delete(self._path(name), demand=self._demand_ownership)
        if not await filer.entries(topic_folder(name, self._namespace), limit=1):
            with suppress(FilerRefused):  # there is something in it by now
                await filer.delete(topic_folder(name, self._namespace), demand=self._demand_ownership)

    def _path(self, name: str) -> str:
        return f"{topic_folder(name, self._namespace)}/{INTENT}"
