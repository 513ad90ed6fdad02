"""
Values written in transactions that are still open.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.cluster.pending_values import PendingValues

KEYS = "ab"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 3), st.sampled_from(KEYS)),
        st.tuples(st.just("plain"), st.just(0), st.sampled_from(KEYS)),
        st.tuples(st.just("forget"), st.just(0), st.sampled_from(KEYS)),
        st.tuples(st.sampled_from(["commit", "abort"]), st.integers(1, 3), st.just("")),
    )
)


@given(STEPS)
def test_the_last_written_value_counts(steps: list[tuple[str, int, str]]) -> None:
    """
    Whatever commits, and when: of each key the last committed value in the log counts, as if all had been read from a
    log without open transactions. Deletions include pending values.
    """
    undecided = PendingValues[str, int]()
    shown: dict[str, int] = {}
    log: list[tuple[int, int, str]] = []  # number, producer or 0, key
    outcomes: dict[int, bool] = {}  # by number
    open_ones: dict[int, list[int]] = {}
    for number, (step, producer, key) in enumerate(steps, 1):
        if step == "put":
            undecided.put(producer, key, number)
            log.append((number, producer, key))
            open_ones.setdefault(producer, []).append(number)
        elif step == "plain":
            undecided.overtake(key)
            shown[key] = number
            log.append((number, 0, key))
            outcomes[number] = True
        elif step == "forget":
            undecided.forget(key)
            shown.pop(key, None)
            log = [row for row in log if row[2] != key]
        else:
            for ended in open_ones.pop(producer, []):
                outcomes[ended] = step == "commit"
            shown |= dict(undecided.end(producer, commits=step == "commit"))
        assert shown == {key: number for number, _, key in log if outcomes.get(number)}
        waiting = {key for number, _, key in log if number not in outcomes}
        assert {key for key in KEYS if undecided.has(key)} == waiting == set(undecided.keys())


def test_pending_values_are_listed() -> None:
    """
    They are in the order in which they were written.
    """
    undecided = PendingValues[str, int]()
    assert not undecided
    undecided.put(7, "a", 1)
    undecided.put(7, "b", 2)
    undecided.put(8, "b", 3)
    undecided.overtake("a")
    assert undecided
    assert list(undecided) == [(7, "a", None), (7, "b", 2), (8, "b", 3)]
    again = PendingValues[str, int]()
    for row in undecided:
        again.put(*row)
    assert list(again) == list(undecided)
    undecided.end(7, commits=False)
    undecided.end(8, commits=False)
    assert not undecided
