"""
Control records: the markers that end a transaction within a log.
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32


class ControlRecordTypeSchema(Message, versions="0"):
    """
    Key of every control record, behind an i16 version.
    """

    type: i16  # 0 abort, 1 commit; 2 and up are KRaft's own


class EndTxnMarker(Message, versions="0"):
    """
    Value of the control record that ends a transaction, behind an i16 version.
    """

    coordinator_epoch: i32  # a lower one than the last is fenced
