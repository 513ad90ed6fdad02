"""
What can be called.
"""

from typing import Generic, NamedTuple, TypeVar

from google.protobuf.message import Message

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)


class Method(NamedTuple, Generic[RequestT, ResponseT]):
    """
    A method of a service: where it is, as /package.Service/Method, and which messages go either way.
    """

    path: str
    request: type[RequestT]
    response: type[ResponseT]
