"""
Ctrl-C while `kgateway` starts.
"""

import signal
import subprocess
import sys

import pytest

# An import that waits, in the place of one that takes long.
_SLOW = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == SLOW:
            print("importing", flush=True)
            time.sleep(30)
sys.meta_path.insert(0, Slow())
from runpy import run_module
sys.argv = ["kgateway", *ARGUMENTS]
run_module("kgateway", run_name="__main__", alter_sys=False)
"""


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("kgateway.cli.main", ["topics", "list"]),
        ("kgateway.cli.topics.overview", ["topics", "list"]),
        ("twisted.scripts.twistd", ["serve"]),
    ],
)
def test_an_import_is_interrupted_silently(module: str, arguments: list[str]) -> None:
    code = _SLOW.replace("SLOW", repr(module)).replace("ARGUMENTS", repr(arguments))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == b"importing\n"
        process.send_signal(signal.SIGINT)
        assert (process.wait(30), process.stdout.read(), process.stderr.read()) == (130, b"", b"")
