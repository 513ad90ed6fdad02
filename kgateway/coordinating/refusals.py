"""
What goes wrong with the partition of a coordinator, in the words in which its clients are told.
"""

from twisted.python.failure import Failure

from kgateway.wire.errors import ErrorCode, KafkaError

_TOLD_AS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def as_coordinator(error: KafkaError) -> KafkaError:
    """
    The error of a partition, said of the coordinator that keeps its state there.
    """
    return KafkaError(_TOLD_AS.get(error.code, error.code), error.message)


def coordinators_failure(failure: Failure) -> Failure:
    """
    The same of a failure that comes later.
    """
    return Failure(as_coordinator(failure.value)) if isinstance(failure.value, KafkaError) else failure
