"""
FindCoordinator: finds the coordinator of a group or a transactional id.

 - v0: groups only
 - v1: key_type, so transactions too (KIP-98); error_message, throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: flexible
 - v4: coordinator_keys and coordinators: several keys at a time (KIP-699)
 - v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
 - v6: key_type 2, for share groups (KIP-932)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class FindCoordinatorRequest(Message, key=10, versions="0-6", flexible="3+"):
    key: str = v("0-3")
    key_type: i8 = v("1+")  # 0 group, 1 transaction, 2 share
    coordinator_keys: list[str] = v("4+")  # a share key is group:topic_id:partition


class FindCoordinatorResponse(Message, key=10, versions="0-6", flexible="3+"):
    class Coordinator(Struct):
        key: str
        node_id: i32  # -1 with an error
        host: str
        port: i32
        error_code: i16
        error_message: str | None

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = v("0-3")
    error_message: str | None = v("1-3")
    node_id: i32 = v("0-3")  # -1 with an error
    host: str = v("0-3")
    port: i32 = v("0-3")
    coordinators: list[Coordinator] = v("4+")
