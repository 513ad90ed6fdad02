"""
Control records: what a broker writes into a log between the records of producers.
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class ControlRecordTypeSchema(Message, versions="0"):
    """
    Key of every control record, behind an i16 version.
    """

    type: i16  # 0 abort, 1 commit, 2 leader change; 3 and up are in KRaft's own log only


class EndTxnMarker(Message, versions="0"):
    """
    Value of the control record that ends a transaction, behind an i16 version.
    """

    coordinator_epoch: i32  # a lower one than the last is fenced


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """
    Value of the control record with which a leader begins; its own first field is the version.

     - v1: voter_directory_id (KIP-853)
    """

    class Voter(Struct):
        voter_id: i32
        voter_directory_id: Uuid = v("1+")

    version: i16
    leader_id: i32
    voters: list[Voter]
    granting_voters: list[Voter]
