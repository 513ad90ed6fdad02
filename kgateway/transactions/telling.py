"""
Tells, in the gateway's log, why a producer can write no more: once, when it is refused for the first time.
"""

from twisted.logger import Logger

from kgateway.wire.errors import ErrorCode, KafkaError

_FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
_REMEMBERED = 1_000


class Fencings:
    """
    What was told last is remembered, so that who asks again and again does not fill the log.
    """

    _log = Logger()

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], None] = {}

    def tell(self, transactional_id: str, refusal: KafkaError) -> None:
        """
        Say so, if it is that.
        """
        told = transactional_id, refusal.message or ""
        if refusal.code not in _FENCED or told in self._told:
            return
        self._told[told] = None
        if len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        self._log.info("{id}: a producer is fenced: {reason}", id=transactional_id, reason=refusal)
