"""
Clients may only create topics whose names are TEAM.SUBJECT, such as billing.invoices.
"""

from kgateway.api import Context, around
from kgateway.interfaces import Proceed
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message


@around(CreateTopicsRequest)
async def check_names(request: CreateTopicsRequest, context: Context, proceed: Proceed) -> Message | None:
    for topic in request.topics:
        if topic.name.count(".") != 1:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"{topic.name} is not named TEAM.SUBJECT")
    return await proceed(request)
