"""
ElectLeaders: elects other leaders for partitions. Gateways decide among themselves which one leads, so there is nothing
to elect.

 - v1: election_type; a top-level error_code (KIP-460)
 - v2: flexible
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kgateway.wire.errors import ErrorCode, KafkaError

Results = ElectLeadersResponse.ReplicaElectionResult

_PREFERRED, _UNCLEAN = 0, 1


@api(ElectLeadersRequest, ElectLeadersResponse, versions="0-2", needs=Operation.ALTER.on(Resource.CLUSTER))
def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    if request.topic_partitions != [] and request.election_type not in (_PREFERRED, _UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is None:  # without a list, only partitions with an election are in the response
        results = [Results(topic=name, partition_result=[]) for name in context.broker.view().topics]
    else:
        results = [_results(asked, context) for asked in request.topic_partitions]
    return ElectLeadersResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, replica_election_results=results)


def _results(asked: ElectLeadersRequest.TopicPartition, context: Context) -> Results:
    return Results(
        topic=asked.topic, partition_result=[_answer(asked.topic, index, context) for index in asked.partitions]
    )


def _answer(name: str, index: int, context: Context) -> Results.PartitionResult:
    why = _refusal(name, index, context)
    code = context.refuse(why, f"{name}-{index}")
    return Results.PartitionResult(partition_id=index, error_code=code, error_message=why.message)


def _refusal(name: str, index: int, context: Context) -> KafkaError:
    topic = context.broker.view().topics.get(name)
    if topic is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
