"""
What of HTTP/2 is left to `h2`: greetings, headers, the states of streams, what a peer allows to be sent, pings.

Plain DATA frames that come are no part of it (`frames.py`): `h2` is not shown them, and does not miss them.
"""

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes, Settings
from twisted.internet.interfaces import IConsumer, ITCPTransport


class ITransport(ITCPTransport, IConsumer):
    """
    What a connection asks of Twisted's transports.
    """


def greeting(window_bytes: int) -> H2Connection:
    """
    A connection of a client that has its greeting to send: a peer may send so much on one stream, and on all.
    """
    http2 = H2Connection(H2Configuration(client_side=True))
    settings = {SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: window_bytes}
    http2.local_settings = Settings(client=True, initial_values=settings)
    http2.initiate_connection()
    http2.increment_flow_control_window(window_bytes - http2.inbound_flow_control_window)
    return http2
