"""
DeleteRecords and retention in a schedule, and the judgement of their answers.
"""

from random import Random

from twisted.python.failure import Failure

from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.log.power_clients import Clients, Judge
from tests.broker.log.power_log import Broken, ExpectedLog


class Deletions:
    """
    Requests deletions, and judges the answers.
    """

    def __init__(self, chance: Random, judge: Judge) -> None:
        self._chance = chance
        self._judge = judge

    def make(self, partition: IPartition, clients: Clients) -> str:
        log = clients.log
        if self._chance.random() < 0.3:
            partition.expire().addErrback(self._failed).addErrback(self._judge.note)
            return f"expire {log.name}"
        offset, limit = self._offset(partition), partition.high_watermark
        if offset <= limit:
            log.asked_to_begin(offset)
        answer = partition.delete_before(offset)
        answer.addCallbacks(self._answered, self._refused, (log, offset), errbackArgs=(offset > limit,))
        answer.addErrback(self._judge.note)
        return f"delete of {log.name} before {offset}"

    def _offset(self, partition: IPartition) -> int:
        end = partition.high_watermark
        return self._chance.choice((end, self._chance.randint(0, end), self._chance.randint(0, end), end + 1))

    def _answered(self, start: int, log: ExpectedLog, offset: int) -> None:
        if self._judge.hears():
            self._judge.tell(f"{log.name} begins at {start}")
            log.begins(start)
            if start < offset:
                raise Broken(f"{log.name} was to begin at {offset}, and begins at {start}")

    def _refused(self, failure: Failure, is_behind: bool) -> None:
        error = failure.value
        is_out = isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE
        if is_out != is_behind and self._judge.hears() and not (is_behind and isinstance(error, KafkaError)):
            raise Broken(f"an offset that {'cannot' if is_behind else 'can'} be the log start was told: {error}")
        if not is_out:
            self._failed(failure)

    def _failed(self, failure: Failure) -> None:
        if self._judge.hears():
            self._judge.excuse(failure.value)
