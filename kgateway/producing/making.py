"""
Batches that take time before they are appended: they are made of something else, looked at record by record, or the
first of a transaction. Meanwhile all that comes behind them through the same connection waits for its turn.
"""

from contextlib import suppress
from typing import NamedTuple, cast

from twisted.internet.defer import Deferred

from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.converting.incoming import incoming
from kgateway.converting.slices import IncomingSlices
from kgateway.partitions import foreseen
from kgateway.producing.acknowledgement import Answer
from kgateway.producing.beginning import allowed
from kgateway.producing.writing import PartitionData, Writing
from kgateway.records.batch import Batch
from kgateway.records.steps import Steps
from kgateway.transactions.state import Place
from kgateway.wire.errors import KafkaError
from kgateway.wire.types import Buffer

Made = Deferred[Batch | None]


class Unmade(NamedTuple):
    """
    A topic whose batches cannot be appended yet: what they are made of, where the answers for them go, and what the
    coordinators of their transactions were asked.
    """

    topic: Topic
    data: list[PartitionData]
    answers: list[Answer]
    joining: Deferred[None] | None


async def write_made(unmade: list[Unmade], writing: Writing) -> None:
    """
    Append what is made of the records that came, once it is made, and what came before is appended.
    """
    context = writing.context
    before, own = context.session.appending, Deferred[None]()
    context.session.appending = own
    makings = [(one, data, Made.fromCoroutine(_made(one.topic, data, context))) for one in unmade for data in one.data]
    try:
        if before:
            await before
        for one in unmade:
            if one.joining is not None:
                with suppress(KafkaError):  # which each batch is told when it is asked of it
                    await one.joining
        for one, data, making in makings:
            one.answers.append(await _write(one.topic, data.index, making, writing))
            data.records = None  # the log has what was made of them; the request is there until it is answered
    finally:
        _appended(own, context)


async def _made(topic: Topic, data: PartitionData, context: Context) -> Batch | None:
    partition = context.broker.partition(topic.id, data.index)  # which is refused before any work

    def steps() -> Steps[Batch | None]:
        records = cast("Buffer | None", data.records)
        batch = yield from incoming(records, context.version, topic.config)
        if batch is not None:
            yield from partition.judge(batch)
        return batch

    return await context.service(IncomingSlices).do(steps())


async def _write(topic: Topic, index: int, making: Made, writing: Writing) -> Answer:
    try:
        batch = await making
        if batch is not None:
            partition = writing.context.broker.partition(topic.id, index)
            await allowed(batch, Place(topic.name, index), partition, writing.request, writing.context)
    except Exception as error:
        return writing.refused(foreseen(error, f"{topic.name}-{index}"), topic.name, index)
    return writing.as_made(topic, index, batch)


def _appended(own: Deferred[None], context: Context) -> None:
    if context.session.appending is own:
        context.session.appending = None
    else:
        context.clock.callLater(0, own.callback, None)  # not at once: many may wait for one another
