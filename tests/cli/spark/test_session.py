"""
Sessions of Spark, and the reason in Spark's error messages.
"""

from argparse import Namespace

import pytest

from kgateway.cli.spark.session import in_words, settings

_OF_A_WORKER = """\
An error occurred while calling o81.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "reading.py", line 7, in read
    raise DataLost("offsets 3 to 5 of orders-0 are gone")
kgateway.spark.errors.DataLost: offsets 3 to 5 of orders-0 are gone

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:1)
"""


@pytest.mark.parametrize(
    ("trace", "told"),
    [
        (_OF_A_WORKER, "offsets 3 to 5 of orders-0 are gone"),
        (
            "An error occurred while calling o1.parquet.\n: java.io.IOException: No space left on device\n\tat a.b(c)",
            "No space left on device",
        ),
        ("An error occurred while calling o1.run.\n: java.lang.NullPointerException", "java.lang.NullPointerException"),
        ("An error occurred while calling o1.run.", "An error occurred while calling o1.run."),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] There is no orders.\nIt is at line 1",
            "[TABLE_OR_VIEW_NOT_FOUND] There is no orders.",
        ),
        ("\n[WRONG] There is no orders; line 1 pos 7;\n'Project", "[WRONG] There is no orders; line 1 pos 7"),
        (
            "An error occurred while calling o1.getResult.\n: org.apache.spark.SparkException: Exception thrown in "
            "awaitResult: \n\tat a.b(c)\nCaused by: a.JobFailed: Job aborted\nCaused by: a.Zero: Division by zero\n",
            "Division by zero",
        ),
        (
            "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage materialization: \n"
            "  1. Zero: Division by zero\n  2. Zero: Division by zero\n",
            "1. Zero: Division by zero",
        ),
    ],
)
def test_the_reason_alone(trace: str, told: str) -> None:
    assert in_words(trace) == told


def test_sockets_of_this_machine() -> None:
    """
    If all tasks run in one Java process, it talks to Python over Unix sockets in the job's folder, unless a setting
    says otherwise or the paths would be too long.
    """
    enabled, there = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
    local = settings(Namespace(master="local[2]", conf=[]), "/tmp/a")
    assert (local[enabled], local[there]) == ("true", "/tmp/a")
    assert settings(Namespace(master="local[2]", conf=[(enabled, "false")]), "/tmp/a")[enabled] == "false"
    assert enabled in settings(Namespace(master="local[2]", conf=[]), "/" + 63 * "a")
    assert enabled not in settings(Namespace(master="local[2]", conf=[]), "/" + 64 * "a")
    for master in ("local-cluster[2,1,1024]", "spark://one:7077"):
        assert enabled not in settings(Namespace(master=master, conf=[]), "/tmp/a")
