"""
ACL requests to a gateway without ACLs.
"""

from typing import Any

import pytest

from kgateway.api import Handler, Operation, Resource
from kgateway.handlers.create_acls import create_acls
from kgateway.handlers.delete_acls import delete_acls
from kgateway.handlers.describe_acls import describe_acls
from kgateway.server.answers import refused
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.server.test_answers import Sample, plain
from tests.serving import Denying, Serving

EVERY = pytest.mark.parametrize("handler", [describe_acls, create_acls, delete_acls], ids=lambda handler: handler.name)
REASON = "No Authorizer is configured"


def outcome(handler: Handler, version: int, serving: Serving) -> tuple[KafkaError, dict[str, Any]]:
    """
    The handler's error and the response to the client.
    """
    request = Sample().one_of_each(handler.request, version)
    with pytest.raises(KafkaError) as caught:
        serving.ask(handler, request, version)
    answer = refused(request, handler.response, version, caught.value)
    assert answer is not None
    return caught.value, plain(answer, version)


@EVERY
def test_acls_are_not_supported(handler: Handler) -> None:
    """
    A client that describes, creates or deletes ACLs learns in every version that nothing would enforce them.
    """
    assert handler.advertised == range(1, 4)
    for version in handler.versions:
        error, answer = outcome(handler, version, Serving())
        assert error.code == ErrorCode.SECURITY_DISABLED
        assert (error.message or "").startswith(REASON)
        [told] = next((value for value in answer.values() if isinstance(value, list) and value), [answer])
        assert (told["error_code"], told["error_message"]) == (error.code, error.message)


@EVERY
def test_permissions_are_checked_first(handler: Handler) -> None:
    """
    Describing ACLs needs DESCRIBE on the cluster, changing them ALTER; a client without it learns nothing else.
    """
    operation = Operation.DESCRIBE if handler is describe_acls else Operation.ALTER
    authorizer = Denying(lambda asked, resource, name: asked is operation)
    error, _ = outcome(handler, 3, Serving(authorizer))
    assert error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert authorizer.asked == [(operation, Resource.CLUSTER, "kafka-cluster")]


def test_the_reason_counts_the_refused_acls() -> None:
    error, _ = outcome(create_acls, 3, Serving())
    assert "none of 1 " in (error.message or "")
