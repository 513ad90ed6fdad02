"""
Errors: Kafka's error codes with the exception that carries one, and the two failures of the codec.

An error code is one row of one table: its number on the wire, whether a client may send the same request again, and
what happened, as the client sees it. All code reads these facts from here.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Self


class ErrorCode(IntEnum):
    """
    Kafka's error codes; an IntEnum packs as the i16 it is.
    """

    retriable: bool
    meaning: str

    # The defaults are for type checkers, which take the look-up ErrorCode(3) for a call of this. Every row gives all.
    def __new__(cls, number: int, retriable: bool = False, meaning: str = "") -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.retriable = retriable
        code.meaning = meaning
        return code

    # name = number, retriable, meaning
    UNKNOWN_SERVER_ERROR = -1, False, "the server failed unexpectedly"
    NONE = 0, False, "no error"
    OFFSET_OUT_OF_RANGE = 1, False, "the offset is before the start of the log or past its end"
    CORRUPT_MESSAGE = 2, True, "the records are damaged: their checksum, size or content is wrong"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "this broker knows no such topic or partition"
    INVALID_FETCH_SIZE = 4, False, "the fetch requests an invalid number of bytes"
    LEADER_NOT_AVAILABLE = 5, True, "the partition has no leader at the moment"
    NOT_LEADER_OR_FOLLOWER = 6, True, "another broker answers for this partition; refresh metadata"
    REQUEST_TIMED_OUT = 7, True, "the work did not finish in the time allowed; it may still take effect"
    BROKER_NOT_AVAILABLE = 8, False, "the broker concerned is not up"
    REPLICA_NOT_AVAILABLE = 9, True, "the replica asked for is not ready on this broker"
    MESSAGE_TOO_LARGE = 10, False, "a record batch is larger than the topic allows"
    STALE_CONTROLLER_EPOCH = 11, False, "the controller has moved; the epoch sent is that of an earlier one"
    OFFSET_METADATA_TOO_LARGE = 12, False, "the metadata of a committed offset is too long"
    NETWORK_EXCEPTION = 13, True, "the connection broke before the response arrived"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "the coordinator is still loading its state; try again soon"
    COORDINATOR_NOT_AVAILABLE = 15, True, "no coordinator is up for this group or transactional id"
    NOT_COORDINATOR = 16, True, "another broker coordinates this group or transactional id"
    INVALID_TOPIC_EXCEPTION = 17, False, "the topic's name is not allowed, or the topic may not be used this way"
    RECORD_LIST_TOO_LARGE = 18, False, "the record batch does not fit into one log segment"
    NOT_ENOUGH_REPLICAS = 19, True, "nothing was written: too few replicas are in sync"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "the records were written, but too few replicas are in sync to be safe"
    INVALID_REQUIRED_ACKS = 21, False, "acks is not one of -1, 0 and 1"
    ILLEGAL_GENERATION = 22, False, "the group is in another generation than the one sent"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "the member shares no protocol with the rest of the group, or named none"
    INVALID_GROUP_ID = 24, False, "a group may not have this id"
    UNKNOWN_MEMBER_ID = 25, False, "the group has no member with this id"
    INVALID_SESSION_TIMEOUT = 26, False, "the session timeout is shorter or longer than the broker permits"
    REBALANCE_IN_PROGRESS = 27, False, "the group is rebalancing; join again"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "the offset commit is too large to be stored"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "the client may not do this to the topic"
    GROUP_AUTHORIZATION_FAILED = 30, False, "the client may not do this to the group"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "the client may not do this to the cluster"
    INVALID_TIMESTAMP = 32, False, "a record's timestamp is not one the topic accepts"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "the server does not offer this SASL mechanism"
    ILLEGAL_SASL_STATE = 34, False, "the request came out of turn in the SASL exchange"
    UNSUPPORTED_VERSION = 35, False, "the server does not speak this version of the request"
    TOPIC_ALREADY_EXISTS = 36, False, "the name is taken by another topic"
    INVALID_PARTITIONS = 37, False, "the partition count is below one, or would not be an increase"
    INVALID_REPLICATION_FACTOR = 38, False, "fewer than one replica is asked for, or more than there are brokers"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "the replicas cannot be placed on brokers as asked"
    INVALID_CONFIG = 40, False, "the server does not accept a setting's name or value"
    NOT_CONTROLLER = 41, True, "only the controller can do this, and another node is the controller"
    INVALID_REQUEST = 42, False, "the request contradicts itself or breaks the protocol's rules"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "the log's record format is too old for this request"
    POLICY_VIOLATION = 44, False, "a policy of the operator forbids these values"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "the batch does not follow on from the producer's previous one"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "the broker has seen this sequence number of the producer before"
    INVALID_PRODUCER_EPOCH = 47, False, "the producer's epoch is older than the one the broker knows"
    INVALID_TXN_STATE = 48, False, "the transaction is not in a state that permits this step"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "the transactional id does not go with this producer id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "the transaction timeout is longer than the broker permits"
    CONCURRENT_TRANSACTIONS = 51, True, "an earlier step for the same transactional id is still being finished"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "a newer transaction coordinator has replaced the one that sent this"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "the client may not use this transactional id"
    SECURITY_DISABLED = 54, False, "the server runs without the security feature this needs"
    OPERATION_NOT_ATTEMPTED = 55, False, "this part was not tried, because another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, True, "the broker could not read or write its disk"
    LOG_DIR_NOT_FOUND = 57, False, "the broker has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "the server refused the credentials"
    UNKNOWN_PRODUCER_ID = 59, False, "the broker has no state of this producer; its records may have expired"
    REASSIGNMENT_IN_PROGRESS = 60, False, "the partition's replicas are being moved to other brokers"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "the server does not offer delegation tokens"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "the server knows no such delegation token"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "the caller neither owns this delegation token nor may renew it"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, False, "a connection secured this way may not ask for delegation tokens"
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "the client may not do this with the delegation token"
    DELEGATION_TOKEN_EXPIRED = 66, False, "the delegation token is past its end of life"
    INVALID_PRINCIPAL_TYPE = 67, False, "the server does not know this kind of principal"
    NON_EMPTY_GROUP = 68, False, "the group still has members"
    GROUP_ID_NOT_FOUND = 69, False, "there is no group with this id"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "the broker no longer holds this fetch session; start a new one"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "the fetch session is out of step: its epoch is not the one expected"
    LISTENER_NOT_FOUND = 72, True, "the leader has no listener like the one the client connected to"
    TOPIC_DELETION_DISABLED = 73, False, "the operator has switched topic deletion off"
    FENCED_LEADER_EPOCH = 74, True, "the client's leader epoch is older than the broker's; refresh metadata"
    UNKNOWN_LEADER_EPOCH = 75, True, "the client's leader epoch is newer than the broker has heard of"
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "the records' compression is not known to this version of the request"
    STALE_BROKER_EPOCH = 77, False, "the broker that sent this has registered again since"
    OFFSET_NOT_AVAILABLE = 78, True, "the new leader does not know its high watermark yet"
    MEMBER_ID_REQUIRED = 79, False, "join again with the member id given in this response"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "the preferred leader cannot take over now"
    GROUP_MAX_SIZE_REACHED = 81, False, "the group has its maximum number of members"
    FENCED_INSTANCE_ID = 82, False, "a newer member has joined under the same group instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "no replica that may lead the partition is up"
    ELECTION_NOT_NEEDED = 84, True, "the partition already has the leader an election would give it"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "the partition's replicas are not being moved, so there is nothing to stop"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "the group is still subscribed to the topic, so its offsets stay"
    INVALID_RECORD = 87, False, "the broker checked a record and refused it"
    UNSTABLE_OFFSET_COMMIT = 88, True, "a transaction that has not ended has offsets of this group; try again"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "the client has used up its quota; wait and try again"
    PRODUCER_FENCED = 90, False, "a newer producer has taken over this transactional id"
    RESOURCE_NOT_FOUND = 91, False, "the request names something that does not exist"
    DUPLICATE_RESOURCE = 92, False, "the request names the same thing more than once"
    UNACCEPTABLE_CREDENTIAL = 93, False, "the credential offered does not meet the server's rules"
    INCONSISTENT_VOTER_SET = 94, False, "sender or receiver is not among the voters expected"
    INVALID_UPDATE_VERSION = 95, False, "the update names a version it cannot start from or lead to"
    FEATURE_UPDATE_FAILED = 96, False, "the server could not put the change of features into force"
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, False, "the receiver cannot read for whom a request was forwarded"
    SNAPSHOT_NOT_FOUND = 98, False, "the server has no such snapshot"
    POSITION_OUT_OF_RANGE = 99, False, "the position is not inside the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "this broker knows no topic with this id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "another broker is registered under this id"
    BROKER_ID_NOT_REGISTERED = 102, False, "no broker is registered under this id"
    INCONSISTENT_TOPIC_ID = 103, True, "the broker's log belongs to a topic with another id"
    INCONSISTENT_CLUSTER_ID = 104, False, "the request is meant for another cluster"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "the coordinator knows nothing of this transactional id"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "the fetch session mixes requests with and without topic ids"
    INELIGIBLE_REPLICA = 107, False, "a replica proposed as in sync may not be"
    NEW_LEADER_ELECTED = 108, False, "the change was made, and it gave the partition another leader"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "the offset is in remote storage and no longer on the broker's disk"
    FENCED_MEMBER_EPOCH = 110, False, "the group has fenced the member; release all partitions and join again"
    UNRELEASED_INSTANCE_ID = 111, False, "an earlier member holds this group instance id until it leaves"
    UNSUPPORTED_ASSIGNOR = 112, False, "the group cannot use the assignor asked for"
    STALE_MEMBER_EPOCH = 113, False, "the member's epoch is out of date; the next heartbeat brings the current one"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "the request was for a controller and reached a broker, or the reverse"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "the server does not know this kind of endpoint"
    UNKNOWN_CONTROLLER_ID = 116, False, "no controller has this id"
    UNKNOWN_SUBSCRIPTION_ID = (
        117,
        False,
        "the client's metrics are for a subscription that no longer exists or never did",
    )
    TELEMETRY_TOO_LARGE = 118, False, "the client sent more bytes of metrics than the broker accepts at once"
    INVALID_REGISTRATION = 119, False, "the controller refused to register the broker as it describes itself"
    TRANSACTION_ABORTABLE = (
        120,
        False,
        "the transaction has failed; abort it and continue with the same transactional id",
    )
    INVALID_RECORD_STATE = 121, False, "this consumer may no longer acknowledge the record"
    SHARE_SESSION_NOT_FOUND = 122, True, "the broker no longer holds this share session; start a new one"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "the share session is out of step: its epoch is not the one expected"
    FENCED_STATE_EPOCH = 124, False, "the share group's state has a different epoch from the one sent"
    INVALID_VOTER_KEY = 125, False, "the request was meant for a voter with another key"
    DUPLICATE_VOTER = 126, False, "the quorum has this voter already"
    VOTER_NOT_FOUND = 127, False, "the quorum has no such voter"
    INVALID_REGULAR_EXPRESSION = 128, False, "the server cannot read the pattern of topics subscribed to"
    REBOOTSTRAP_REQUIRED = (
        129,
        False,
        "the client's metadata is too old to be refreshed; start again at the bootstrap servers",
    )
    STREAMS_INVALID_TOPOLOGY = 130, False, "the Streams topology sent is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "the group cannot have a Streams topology of this epoch"
    STREAMS_TOPOLOGY_FENCED = 132, False, "the group has a newer Streams topology than the one sent"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "the broker has its maximum number of share sessions"


class KafkaError(Exception):
    """
    An error code for the client, with a message that says more than the code does.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message or self.code.meaning}"


class BadRecord(NamedTuple):
    code: ErrorCode
    number: int
    reason: str


class RecordsRefused(KafkaError):
    """
    Records for which a whole batch is refused. As in Kafka, one wrong timestamp among them decides the code.
    """

    def __init__(self, records: tuple[BadRecord, ...]) -> None:
        self.records = records
        if any(record.code is ErrorCode.INVALID_TIMESTAMP for record in records):
            message = "One or more records have been rejected due to invalid timestamp"
            super().__init__(ErrorCode.INVALID_TIMESTAMP, message)
            return
        first = ", ".join(f"RecordError(batchIndex={number}, message='{reason}')" for _, number, reason in records[:3])
        count = f"{len(records)} record errors in total, and only showing the first three errors at most"
        message = f"One or more records have been rejected due to {count}: [{first}]"
        super().__init__(ErrorCode.INVALID_RECORD, message)


@dataclass(frozen=True, slots=True)
class MessageField:
    """
    A field of a message: `topics.partitions` of MetadataRequest v9.
    """

    message: str
    version: int
    path: str

    def __str__(self) -> str:
        return f"{self.message} v{self.version}: {self.path}"


class Malformed(ValueError):
    """
    Bytes that are not the message they should be.
    """

    def __init__(self, field: MessageField, position: int, reason: str) -> None:
        super().__init__(f"{field} at byte {position}: {reason}")
        self.field, self.position, self.reason = field, position, reason


class Unencodable(ValueError):
    """
    A value that has no form on the wire: a mistake of the code that filled the message.
    """

    def __init__(self, field: MessageField, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason
