"""
A group whose members join, leave, are killed with -9 and are frozen at random moments while records are produced: each
record is processed, no partition has two owners, and no commit of a fenced member is accepted.

Members are of all available clients; `tox -e groups` installs them all. GROUPS_SEED repeats the choices of a run; a
failure names it.
"""

import os
from random import Random, SystemRandom

import pytest

from kgateway.testing.pytest_plugin import StartKafka
from tests.clients.groups.chaos import FIND_OUT_S, SERVER_OPTIONS, Cast, Chaos
from tests.clients.groups.kinds import cast_of
from tests.clients.groups.working_group import no_traceback_in

SEED = os.environ.get("GROUPS_SEED") or str(SystemRandom().randrange(1 << 32))
ROUNDS = int(os.environ.get("GROUPS_ROUNDS", "2"))
SIZE = int(os.environ.get("GROUPS_SIZE", "20"))
_ROUND_S = float(os.environ.get("GROUPS_ROUND_S", "15"))
FAULTS_SHOWN = 20

SCENARIOS = {
    "classic": ["eager"],
    "cooperative": ["cooperative"],
    "consumer": ["consumer"],
    "migration": ["eager", "consumer"],
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_chaos(start_kafka: StartKafka, scenario: str) -> None:
    """
    The group keeps its promises, and settles within a session timeout after each round.
    """
    print(f"\nGROUPS_SEED={SEED}")
    protocols, seed = SCENARIOS[scenario], f"{SEED} {scenario}"
    cast = Cast(cast_of(protocols, Random(f"{seed} cast")), protocols, SIZE)
    kafka = start_kafka(*SERVER_OPTIONS)
    chaos = Chaos(kafka.port, f"group-{scenario}", cast, seed)
    with no_traceback_in(kafka), chaos:
        for _ in range(ROUNDS):
            chaos.rage(_ROUND_S)
            chaos.settle()
        found = chaos.finish(FIND_OUT_S)
        print(chaos.summary)
        assert not found, f"with GROUPS_SEED={SEED}:\n" + "\n".join(found[:FAULTS_SHOWN])
