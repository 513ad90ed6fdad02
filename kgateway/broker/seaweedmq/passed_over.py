"""
Messages of others in a topic whose form has no place for them.

Each is told in the log once and then passed over, so that they keep nobody from what comes behind them: they have none
of Kafka's offsets, and nothing of Kafka's is lost with them. A message of ours that is damaged is something else: its
offsets are missing without it, so whoever comes to it is stopped.
"""

from functools import partial

from twisted.logger import Logger

from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import LeftOut, Report, only_repeated

_TOLD_MAX = 100  # of one partition


class PassedOver:
    """
    Those of one partition.
    """

    _log = Logger()

    def __init__(self) -> None:
        self._told: set[tuple[str, int]] = set()

    def report(self, folder: Folder) -> Report:
        """
        What forms tell of messages in this folder.
        """
        return partial(self._report, folder.path)

    def _report(self, path: str, left_out: LeftOut) -> None:
        if not left_out.is_foreign:
            only_repeated(left_out)
        elif (path, left_out.offset) not in self._told and len(self._told) < _TOLD_MAX:
            self._told.add((path, left_out.offset))
            problem = "message {offset} of others in {path} is passed over: {reason}"
            if len(self._told) == _TOLD_MAX:
                problem += "; there are many, and of more nothing is said"
            self._log.warn(problem, offset=left_out.offset, path=path, reason=left_out.reason)
