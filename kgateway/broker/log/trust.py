"""
What is known of a log before it is opened.
"""

from typing import NamedTuple


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

    @property
    def known_end(self) -> int:
        """
        Records were written up to here at least.
        """
        return max(self.synced, self.settled)
