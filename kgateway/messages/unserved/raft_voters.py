"""
AddRaftVoter: adds a controller to the voters of the KRaft quorum (KIP-853).

 - v1: ack_when_committed (KIP-1186)

RemoveRaftVoter: removes a controller from the voters of the KRaft quorum (KIP-853).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, u16
from kgateway.wire.uuids import Uuid


class AddRaftVoterRequest(Message, key=80, versions="0-1", flexible="0+"):
    class Listener(Struct):
        name: str
        host: str
        port: u16

    cluster_id: str | None  # null: not checked
    timeout_ms: i32
    voter_id: i32
    voter_directory_id: Uuid  # of its metadata log directory
    listeners: list[Listener]
    ack_when_committed: bool = v("1+", default=True)  # false: answered once the leader has it


class AddRaftVoterResponse(Message, key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: i32
    error_code: i16
    error_message: str | None


class RemoveRaftVoterRequest(Message, key=81, versions="0", flexible="0+"):
    cluster_id: str | None  # null: not checked
    voter_id: i32
    voter_directory_id: Uuid  # of its metadata log directory


class RemoveRaftVoterResponse(Message, key=81, versions="0", flexible="0+"):
    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
