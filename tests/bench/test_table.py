"""
The table of the measurements of two servers.
"""

from bench.kafka.table import Compared, Goal, Measured, Row, at_least, at_most, itself_at_most, number
from bench.results import Result, comparison


def compared(row: Row, kgateway: list[float], kafka: list[float]) -> Compared:
    """
    Rounds with values only.
    """
    return Compared(row, [Measured(value) for value in kgateway], [Measured(value) for value in kafka])


def table(found: list[Compared]) -> str:
    return str(comparison(list(map(Result.of, found))))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_goal_is_met_at_its_bound() -> None:
    """
    A ratio equal to its bound meets the goal.
    """
    assert [at_least(1.5).met(ratio) for ratio in (1.49, 1.5, 2)] == [False, True, True]
    assert [at_most(0.2).met(ratio) for ratio in (0.1, 0.2, 0.21)] == [True, True, False]


def test_a_goal_can_be_read_again() -> None:
    """
    A results file has it as text.
    """
    for goal in (at_least(1.5), at_most(0.2), itself_at_most(191)):
        assert Goal.parse(str(goal)) == goal


def test_the_ratio_is_the_median_of_rounds() -> None:
    """
    Each round of kgateway is compared with Kafka's round beside it.
    """
    slowing_down = compared(Row("work", "MB/s", at_least(1.0)), [100, 50, 10], [50, 25, 100])
    assert slowing_down.ratios == [2.0, 2.0, 0.1]
    assert "| 2.00 (0.10 to 2.00) | >= 1 | met |" in table([slowing_down])


def test_a_goal_for_kgateway_by_itself() -> None:
    """
    The goal is for kgateway's value where Kafka's does not matter.
    """
    row = Row("committed", "of uncommitted's", itself_at_most(1.1))
    *_, met, missed = table([compared(row, [1.0, 1.05, 2.0], [0.5] * 3), compared(row, [1.2], [2.0])]).splitlines()
    assert "| itself <= 1.1 | met |" in met
    assert "| itself <= 1.1 | **MISSED** |" in missed


def test_a_missed_goal_stands_out() -> None:
    """
    A row says so if it misses its goal, and nothing if it has none.
    """
    *_, missed, without = table(
        [compared(Row("p99", "ms", at_most(1.0)), [3], [2]), compared(Row("p50", "ms"), [3], [2])]
    ).splitlines()
    assert cells(missed) == ["p99", "ms", "3.00", "2.00", "1.50", "<= 1", "**MISSED**"]
    assert cells(without) == ["p50", "ms", "3.00", "2.00", "1.50", "", ""]


def test_a_ratio_shows_whether_the_goal_is_met() -> None:
    """
    The median has more digits where two of them would show it on the other side of its goal.
    """
    near, very_near, below = table(
        [
            compared(Row("a", "MB/s", at_least(1.0)), [0.9954, 0.9954, 2], [1, 1, 1]),
            compared(Row("b", "MiB", at_most(0.08)), [0.08003], [1]),
            compared(Row("c", "ms", at_most(1.0)), [0.9954], [1]),
        ]
    ).splitlines()[2:]
    assert "| 0.995 (1.00 to 2.00) | >= 1 | **MISSED** |" in near
    assert "| 0.08003 | <= 0.08 | **MISSED** |" in very_near
    assert "| 1.00 | <= 1 | met |" in below


def test_every_round_is_within_the_spread() -> None:
    """
    The least and the greatest value follow the median.
    """
    [line] = table([compared(Row("work", "MB/s"), [300, 100, 200], [1, 1, 1])]).splitlines()[2:]
    assert cells(line)[2] == "200 (100 to 300)"


def test_empty_columns_are_left_out() -> None:
    assert cells(table([compared(Row("p50", "ms"), [1], [2])]).splitlines()[0]) == [
        *("work", "unit", "kgateway", "Kafka", "ratio"),
    ]


def test_cost_and_remark_stand_for_both_servers() -> None:
    """
    kgateway's are first; a row without them has empty cells.
    """
    row = Row("cold", "MB/s", per="GB", remark="{:.0%} from disk")
    measured = Compared(row, [Measured(1, 0.5, 1.2, 0.99)], [Measured(1, 2.5, 0.7, 1)])
    heading, _, line, other = table([measured, compared(Row("warm", "MB/s"), [1], [1])]).splitlines()
    assert cells(heading)[5:] == ["server's CPU s, kgateway / Kafka", "client's cores", "remarks"]
    assert cells(line)[5:] == ["0.500 / 2.50 per GB", "1.2 / 0.7", "99% / 100% from disk"]
    assert cells(other)[5:] == ["", "", ""]


def test_digits() -> None:
    """
    A value has three significant digits.
    """
    shown = [number(value) for value in (0.2714, 2.714, 27.14, 271.4, 27_140)]
    assert shown == ["0.271", "2.71", "27.1", "271", "27,140"]
