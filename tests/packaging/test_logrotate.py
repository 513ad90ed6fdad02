"""
packaging/logrotate.
"""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgateway.config.settings import read_settings
from tests.packaging.containerfile import ROOT

PATH = ROOT / "packaging" / "logrotate"
PROCESS = """
import signal, sys
signal.signal(signal.SIGHUP, lambda *_: sys.exit(3))
print("ready", flush=True)
signal.pause()
"""


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="Debian's logrotate is not installed")
def test_a_rotation_tells_the_gateway(tmp_path: Path) -> None:
    """
    The log is renamed, and the process of the pid file gets SIGHUP.
    """
    text = re.sub(r"/var/(log|lib)/kgateway", str(tmp_path), PATH.read_text())
    (tmp_path / "logrotate").write_text(text)
    (tmp_path / "kgateway.log").write_text("a line\n")
    tmp_path.chmod(0o755)
    with subprocess.Popen([sys.executable, "-c", PROCESS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            (tmp_path / "kgateway.pid").write_text(str(process.pid))
            words = ["logrotate", "--force", "--state", str(tmp_path / "state"), str(tmp_path / "logrotate")]
            subprocess.run(words, check=True, timeout=60)
            assert process.wait(10) == 3
        finally:
            process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "kgateway.log").exists()
    [rotated] = tmp_path.glob("kgateway.log-*")
    assert rotated.read_text() == "a line\n"


def test_the_daemon_that_it_rotates_for_is_documented() -> None:
    """
    docs/deployment.md starts the daemon with the same log and pid file.
    """
    [log] = re.findall(r"^(/.*) \{$", PATH.read_text(), re.MULTILINE)
    [pid] = re.findall(r"cat (/.*)\)", PATH.read_text())
    page = (ROOT / "docs" / "deployment.md").read_text()
    assert f"--logfile={log}" in page
    assert f"--pidfile={pid}" in page


def test_the_daemon_starts_after_a_reboot() -> None:
    """
    What the documented daemon writes is in folders that were made for it, and not in /run, which a reboot empties.
    """
    page = (ROOT / "docs" / "deployment.md").read_text()
    section = page.partition("\n## Daemon\n")[2].partition("\n## ")[0]
    [block] = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    made, command, _ = [shlex.split(line) for line in block.replace("\\\n", "").splitlines()]
    folders = {Path(word) for word in made if word.startswith("/")}
    options = dict(word.split("=", 1) for word in command if word.startswith("--") and "=" in word)
    arguments = command[command.index("kgateway") + 1 :]
    arguments[arguments.index("--config") + 1] = str(ROOT / "packaging" / "kgateway.toml")
    settings = read_settings(arguments, {})
    written = [
        options["--pidfile"],
        options["--logfile"],
        settings.control_socket,
        settings.broker.removeprefix("log:"),
    ]
    assert {Path(path).parent for path in written} | {Path(options["--rundir"])} == folders
    assert not any(folder.is_relative_to("/run") for folder in folders)
