"""
What `.ci/run` runs after the default suite.
"""

import importlib.util
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def _plan() -> Any:
    spec = importlib.util.spec_from_file_location("ci_plan", ROOT / ".ci" / "plan.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plan = _plan()
BEGIN = 8  # the default suite, and its requirements
CHANGES = {
    "nothing": [],
    "everything": [path for row in plan.TABLE for path in row.paths],
    "spark": ["kgateway/spark/x"],
}


def _names(row: Any) -> list[str]:
    return re.split(",", re.findall(r"-e (\S+)", row.tox)[0])


def test_every_named_environment_is_in_the_table() -> None:
    """
    Each environment of tox.ini, except those of the default suite, has one row.
    """
    tox = (ROOT / "tox.ini").read_text()
    named = {*re.findall(r"^\[testenv:([a-z0-9-]+)\]", tox, re.MULTILINE), "py312", "py313"} - {
        "lint",
        "types",
        "tests",
    }
    assert sorted(name for row in plan.TABLE for name in _names(row)) == sorted(named)


def test_ci_runs_the_plan() -> None:
    """
    `.ci/run` calls the plan after the default suite, with its arguments.
    """
    last = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert ".ci/plan.py" in last
    assert last.endswith('"$@"')


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_each_environment_runs_every_fifth_day(changed: list[str]) -> None:
    """
    Whatever a change touches, all rows run within any five days.
    """
    runs = [set(plan.imagined(plan.ordered(day, changed), day, BEGIN).passed) for day in range(100, 105)]
    assert set.union(*runs) == set(plan.TABLE)


@pytest.mark.parametrize("day", range(plan.DAYS))
@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_a_run_takes_an_hour(changed: list[str], day: int) -> None:
    """
    The expected time is below the limit, and little of it is unused; the rest is named.
    """
    outcome = plan.imagined(plan.ordered(day, changed), day, BEGIN)
    minutes = BEGIN + sum(row.minutes for row in outcome.passed)
    assert minutes <= plan.LAST_MINUTE < 60
    assert minutes > plan.LAST_MINUTE - min(row.minutes for row in outcome.left_out)
    assert sorted(outcome.passed + outcome.left_out) == sorted(plan.TABLE)


def test_rows_of_the_change_run_first() -> None:
    """
    They are followed by today's fifth, then by that of tomorrow.
    """
    rows = plan.ordered(2, ["kgateway/spark/x", "LICENSE"])
    touched = [row for row in rows if any("kgateway/spark/".startswith(path) for path in row.paths)]
    assert len(touched) > 2
    assert rows[: len(touched)] == touched
    rest = [(row.day - 2) % plan.DAYS for row in rows[len(touched) :]]
    assert rest == sorted(rest)
    assert rest[0] == 0


def test_what_is_touched_leaves_time_for_today() -> None:
    """
    A touched row that would take the time of today's rows is left out.
    """
    one, other, today = (plan.Row(name, 10, day, ()) for name, day in (("-e a", 1), ("-e b", 2), ("-e c", 0)))
    spent = [0]

    def passes(row: Any) -> bool:
        spent[0] += row.minutes
        return bool(row is not one)

    outcome = plan.carry_out([one, other, today], 0, 29, lambda: spent[0], passes)
    assert outcome == ([today], [one], [other])


@pytest.mark.parametrize(("how", "failing", "code"), [("", "", 0), ("", "-e groups", 1), ("all", "", 0)])
def test_the_exit_code_and_the_report(
    how: str, failing: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A failing environment fails the run; what was left out is named, which `all` leaves nothing of.
    """
    ran: list[str] = []

    def run(command: list[str], **_: Any) -> Any:
        ran.append(" ".join(command[1:]))
        return SimpleNamespace(returncode=int(ran[-1] == failing))

    # Day 3 is that of the groups. Each environment takes ten minutes.
    clock = SimpleNamespace(time=lambda: 3 * 86_400, monotonic=lambda: 600 * len(ran))
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "subprocess", SimpleNamespace(run=run))
    monkeypatch.setattr(plan, "changed_paths", list)
    assert plan.main("8", how) == code
    report = capsys.readouterr().out.splitlines()
    rows = [row.tox for row in plan.TABLE]
    ended = [tox for tox in rows if f"passed: tox {tox}" in report or f"FAILED: tox {tox}" in report]
    left_out = [tox for tox in rows if f"left out: tox {tox}" in report]
    assert sorted(ended) == sorted(ran)
    assert sorted(ended + left_out) == sorted(rows)
    assert bool(left_out) is (how != "all")
    assert not failing or f"FAILED: tox {failing}" in report


@pytest.mark.parametrize("row", plan.TABLE, ids=lambda row: row.tox)
def test_paths_exist(row: Any) -> None:
    """
    No path that belongs to a row has been moved.
    """
    for path in row.paths:
        assert any(ROOT.glob(f"{path.rstrip('/')}*")), path


def test_the_change_is_what_main_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    In a clone of main itself, it is what was committed in the hours before the newest commit; without Git, nothing.
    """
    monkeypatch.setattr(plan, "ROOT", tmp_path)
    assert plan.changed_paths() == []

    def git(*arguments: str, hour: int = 0) -> None:
        when = {"GIT_COMMITTER_DATE": f"2026-01-01T{hour:02}:00:00Z", "GIT_CONFIG_GLOBAL": "/dev/null"}
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        subprocess.run(["git", *arguments], cwd=tmp_path, env=when | names | {"PATH": "/usr/bin:/bin"}, check=True)

    git("init", "-q")
    for name, hour in (("old", 1), ("new", 11), ("newest", 12)):
        (tmp_path / name).write_text(name)
        git("add", ".")
        git("commit", "-q", "-m", name, hour=hour)
    assert plan.changed_paths() == ["new", "newest"]
    git("update-ref", "refs/remotes/origin/main", "HEAD^")
    assert plan.changed_paths() == ["newest"]


def test_what_the_site_is_made_of_touches_it() -> None:
    """
    The row of the site has each page that another includes, and each module whose docstrings are shown.
    """
    pages = [(path, path.read_text()) for path in (ROOT / "docs").rglob("*.md")]
    included = {
        str((path.parent / name).resolve().relative_to(ROOT))
        for path, text in pages
        for name in re.findall(r"^```\{include\} (\S+)", text, re.MULTILINE)
    }
    shown = {name for _, text in pages for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)", text, re.MULTILINE)}
    sources = included | {_source(name) for name in shown}
    assert {"SECURITY.md", "kgateway/interfaces.py", "kgateway/context.py"} <= sources
    [row] = [row for row in plan.TABLE if row.tox == "-e docs"]
    assert {source for source in sources if not source.startswith(row.paths)} == set()


def _source(name: str) -> str:
    """
    The file of a module, or of the one that has a class.
    """
    path = ROOT / name.replace(".", "/")
    while not path.with_suffix(".py").exists() and not (path / "__init__.py").exists():
        path = path.parent
    source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    return str(source.relative_to(ROOT))
