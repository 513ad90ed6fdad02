"""
AlterReplicaLogDirs: moves partitions to another disk of a broker. A gateway has one log directory, so a move to it is
done already, and there is no other.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from kgateway.topic_lookup import topic_named
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = AlterReplicaLogDirsResponse.Result.Partition


@api(
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, versions="1-2", needs=Operation.ALTER.on(Resource.CLUSTER)
)
def alter_replica_log_dirs(request: AlterReplicaLogDirsRequest, context: Context) -> AlterReplicaLogDirsResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    asked: dict[str, dict[int, str]] = {}  # the last directory given for a partition counts
    for place in request.dirs:
        for topic in place.topics:
            asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, place.path))
    return AlterReplicaLogDirsResponse(
        throttle_time_ms=0,
        results=[
            AlterReplicaLogDirsResponse.Result(
                topic_name=name, partitions=[_answer(name, index, path, context) for index, path in paths.items()]
            )
            for name, paths in asked.items()
            if paths
        ],
    )


def _answer(name: str, index: int, path: str, context: Context) -> Answer:
    try:
        _check(name, index, path, context)
    except KafkaError as error:
        return Answer(partition_index=index, error_code=context.refuse(error, f"{name}-{index}"))
    return Answer(partition_index=index, error_code=ErrorCode.NONE)


def _check(name: str, index: int, path: str, context: Context) -> None:
    """
    Refuse any directory but the present one.
    """
    if path != context.broker.log_dir:
        reason = f"{path} cannot store partitions; all are in {context.broker.log_dir}"
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, reason)
    topic = topic_named(context, name)
    if not 0 <= index < len(topic.partitions):
        raise topic.no_partition(index)
