"""
RemoveRaftVoter: takes a controller's vote in the KRaft quorum away (KIP-853).
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class RemoveRaftVoterRequest(Message, key=81, versions="0", flexible="0+"):
    """
    Names the voter to remove.
    """

    cluster_id: str | None  # null: not checked
    voter_id: i32
    voter_directory_id: Uuid  # of its metadata log directory


class RemoveRaftVoterResponse(Message, key=81, versions="0", flexible="0+"):
    """
    Whether the voter was removed.
    """

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
