"""
What a coordinator keeps of its groups: rows of `__consumer_offsets`, as messages.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.wire.schema import Message


class Row(NamedTuple):
    """
    A key and what is true of it from now on; without a value, nothing is.
    """

    key: Message
    value: Message | None


# Writes rows at once, as one batch. `None` when they are safe by then, else a Deferred that fires or fails (KafkaError)
# as they become so; a KafkaError is raised where they cannot be written at all.
Write = Callable[[Sequence[Row]], Deferred[None] | None]
