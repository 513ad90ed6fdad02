"""
What is known of a log before it is opened.
"""

from typing import NamedTuple

from kgateway.cluster.partition import EARLIEST_OFFSET


class Trust(NamedTuple):
    """
    That all before `synced` will outlast the machine, and that all before `settled` is as it was written; with
    `process_only`, that the machine has not died since, so that nothing can be missing behind it either; with `clean`,
    that all there is was synced.
    """

    synced: int
    settled: int
    process_only: bool
    clean: bool = False
    log_start: int = EARLIEST_OFFSET

    def beginning_at(self, log_start: int) -> "Trust":
        """
        That the log begins there: what is before was synced, and then let go.
        """
        return self._replace(
            synced=max(self.synced, log_start), settled=max(self.settled, log_start), log_start=log_start
        )

    @property
    def known_end(self) -> int:
        """
        Records were written up to here at least.
        """
        return max(self.synced, self.settled)
