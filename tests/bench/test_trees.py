"""
Several versions of kgateway, measured in turns.
"""

from collections.abc import Sequence

import pytest

from bench import trees
from bench.kafka.table import Measured, Row, at_least
from bench.results import Result
from bench.trees import Tree, Version, Work, compared, measure

OLD, NEW = Tree(Version("9738dfe"), 1, 1), Tree(Version("977074e", is_compiled=True), 2, 2)
ROWS = [Row("requests", "requests/s", at_least(1.6)), Row("processor time", "µs")]


def test_trees_take_turns() -> None:
    """
    Each is prepared once, another one begins each round, and the first round does not count.
    """
    began: list[str] = []

    def run(tree: Tree) -> Sequence[Measured]:
        began.append(str(tree.version))
        return [Measured(len(began))]

    work = Work(run, ROWS[:1], lambda tree: began.append(f"prepare {tree.version}"))
    assert measure([OLD, NEW], work, 2) == [[[Measured(5)], [Measured(8)]], [[Measured(6)], [Measured(7)]]]
    assert began[:2] == ["prepare 9738dfe", "prepare 977074e (compiled)"]
    assert began[2:] == [
        *("977074e (compiled)", "9738dfe"),
        *("9738dfe", "977074e (compiled)"),
        *("977074e (compiled)", "9738dfe"),
    ]


def test_a_result_compares_two_trees() -> None:
    """
    The ratio is the median of those of the rounds.
    """
    old = [[Measured(100), Measured(20)], [Measured(50), Measured(40)], [Measured(10), Measured(30)]]
    new = [[Measured(200), Measured(10)], [Measured(75), Measured(20)], [Measured(5), Measured(15)]]
    rate, cpu = map(Result.of, compared(ROWS, new, old))
    assert (rate.kgateway[0], rate.other[0], rate.ratio) == (75, 50, (1.5, 0.5, 2.0))
    assert rate.meets_goal is False
    assert cpu.ratio == (0.5, 0.5, 0.5)


def test_each_row_has_a_name_of_its_own() -> None:
    """
    The page finds a result by its work and its unit.
    """
    names = [(row.work, row.unit) for work in trees.WORKLOADS.values() for row in work.rows]
    assert len(set(names)) == len(names)


def test_a_tree_is_named_as_the_page_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A commit has its short name, and a folder its own.
    """
    monkeypatch.setattr(trees, "_git", lambda *arguments: f"{arguments[-1][:7]}\n")
    assert trees.commits("9738dfe6242f71e5", 9) == ["9738dfe"]
    assert trees.commits(".", 9) == ["."]


@pytest.mark.parametrize("arguments", [["nosuch"], ["HEAD..nosuch"], ["HEAD", "--rounds", "0"]])
def test_what_cannot_be_compared(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It is told before anything is started.
    """
    monkeypatch.setattr("sys.argv", ["trees", *arguments])
    with pytest.raises(SystemExit) as ended:
        trees.main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "nosuch" in told or "--rounds" in told or "not a git repository" in told
