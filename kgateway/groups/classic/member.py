"""
One member of a classic group.
"""

from dataclasses import dataclass

from twisted.internet.defer import Deferred

from kgateway.groups.classic.exchange import Joined, Listed, Synced
from kgateway.groups.classic.protocols import Protocols
from kgateway.groups.classic.session import Session


@dataclass(slots=True, eq=False)
class Member:
    """
    A client that takes part: what it offers, what it is assigned, and the answers it is waiting for.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    session: Session
    assignment: bytes = b""
    is_new: bool = False  # it has been in no generation yet
    joining: Deferred[Joined] | None = None
    syncing: Deferred[Synced] | None = None

    @property
    def is_heard(self) -> bool:
        """
        Whether it need not send heartbeats now: it waits for our answer. A new member might have gone long ago.
        """
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def beat(self) -> None:
        """
        It lives. A new member is given longer than its session, and not less for what it says meanwhile.
        """
        if not self.is_new:
            self.session.renew(self.session_timeout_ms)

    def listed(self, protocol: str) -> Listed:
        """
        As the leader is told of it.
        """
        return Listed(self.id, self.instance_id, self.protocols.metadata(protocol))
