"""
The server of a working group is killed and restarted: committed offsets are kept, and the group settles.

Members are of all available clients; `tox -e groups` installs them all.
"""

import os
from pathlib import Path
from time import monotonic

import pytest

from kgateway.testing.kafka import Kafka
from tests.clients.groups.chaos import FIND_OUT_S, SERVER_OPTIONS, Cast, Chaos
from tests.clients.groups.kinds import kinds
from tests.clients.groups.test_chaos import FAULTS_SHOWN, SCENARIOS, SEED
from tests.clients.groups.working_group import no_traceback_in
from tests.clients.seaweedmq import FORM, broker
from tests.faults.victim import free_port

MEMBERS = int(os.environ.get("GROUPS_MEMBERS", "50"))
_KILLS = 2
# The lock of a killed gateway in front of SeaweedMQ expires within a session. Members that have given up meanwhile
# come back as new ones, and their former selves must expire.
_SESSIONS = 1 if FORM is None else 3


@pytest.mark.parametrize("scenario", ["classic", "consumer"])
def test_restart(tmp_path: Path, scenario: str) -> None:
    """
    After each crash committed offsets are where they were or further, no accepted commit is missing, and the group is
    stable again, with all its members, within a session timeout; in front of SeaweedMQ, within three.
    """
    protocols, port = SCENARIOS[scenario], free_port()
    # There are few Java members: KIP-848's consumer takes half a processor while there is no server.
    found = [kind for kind in kinds() if kind.protocols & {*protocols} for _ in range(1 if kind.name == "java" else 4)]
    cast = Cast(found, protocols, MEMBERS)
    listen = ("--listen", f"tcp:{port}:interface=127.0.0.1")
    chaos = Chaos(port, f"group-{scenario}", cast, f"{SEED} restart {scenario}")
    with (
        broker(FORM) as where,
        Kafka(*where, *listen, *SERVER_OPTIONS, folder=tmp_path) as kafka,
        no_traceback_in(kafka),
        chaos,
    ):
        for _ in range(MEMBERS):
            chaos.start()
        chaos.settle()
        for _ in range(_KILLS):
            chaos.commit_further()
            kafka.kill()
            began = monotonic()
            kafka.start()
            print(f"started in {monotonic() - began:.1f} s")
            chaos.settle_again(_SESSIONS)
        wrong = chaos.finish(FIND_OUT_S)
        print(f"{chaos.summary}; {kafka.log.count('joined')} joins of {MEMBERS} members")
        assert not wrong, f"with GROUPS_SEED={SEED}:\n" + "\n".join(wrong[:FAULTS_SHOWN])
