"""
packaging/kgateway.service, and the settings that it starts a gateway with.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgateway.config.settings import read_settings
from kgateway.config.sources import SettingsError
from kgateway.testing.kafka import Kafka
from tests.packaging.containerfile import ROOT

UNIT = ROOT / "packaging" / "kgateway.service"
SETTINGS = ROOT / "packaging" / "kgateway.toml"
_MOST_EXPOSED = 20  # of 100: systemd calls it OK


def _values(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


def _moved(text: str, folder: Path) -> str:
    """
    The text with the places of an installation below a folder, and the program of this environment.
    """
    program = str(Path(sys.executable).with_name("kgateway"))
    text = text.replace("/opt/kgateway/bin/kgateway", program)
    return re.sub(r"/(etc|run|var/lib)/kgateway", rf"{folder}/\1", text)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """
    The unit and its settings in a folder, in which systemd would have made those of the unit.
    """
    for name in ("etc", "run", "var/lib"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / UNIT.name).write_text(_moved(UNIT.read_text(), tmp_path))
    settings = _moved(SETTINGS.read_text(), tmp_path).replace("tcp:9092:", "tcp:0:")
    (tmp_path / "etc" / SETTINGS.name).write_text(settings)
    return tmp_path


def test_its_command_starts_a_gateway(installed: Path) -> None:
    """
    ExecStart runs in the state directory with the variables of the unit and nothing else. The control socket is where
    the settings say.
    """
    [command] = _values("ExecStart")
    words = shlex.split(_moved(command, installed))
    environ = {"PATH": os.environ["PATH"], **dict(value.split("=", 1) for value in _values("Environment"))}
    [folder] = _values("WorkingDirectory")
    with subprocess.Popen(
        words, cwd=_moved(folder, installed), env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout
            log = []
            for line in process.stdout:
                log.append(line)
                if " is ready: " in line:
                    break
            assert " is ready: " in log[-1], "".join(log)
            assert (installed / "run" / "kgateway.sock").is_socket()
            assert (installed / "var/lib" / "data").is_dir()
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_every_place_is_one_that_systemd_makes() -> None:
    """
    Under ProtectSystem=strict the gateway can write to its state and runtime directories only.
    """
    [state], [runtime] = _values("StateDirectory"), _values("RuntimeDirectory")
    settings = read_settings(["--config", str(SETTINGS)], {})
    assert settings.broker.startswith(f"log:/var/lib/{state}/")
    assert settings.control_socket.startswith(f"/run/{runtime}/")
    assert _values("WorkingDirectory") == [f"/var/lib/{state}"]


def test_the_settings_in_comments_exist(tmp_path: Path) -> None:
    """
    Each line that is commented out can be used as it stands; the first listener has to go for the second.
    """
    text = SETTINGS.read_text()
    text = text.replace('listen = ["tcp:9092:interface=127.0.0.1"]\n', "", 1)
    path = tmp_path / "kgateway.toml"
    path.write_text(re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE))
    settings = read_settings(["--config", str(path)], {})
    assert settings.acks_fsync
    assert len(settings.advertise) == 1
    path.write_text("no_such_setting = 1")
    with pytest.raises(SettingsError):
        read_settings(["--config", str(path)], {})


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is part of Debian's systemd")
@pytest.mark.parametrize("check", [["verify"], ["security", "--offline=true", f"--threshold={_MOST_EXPOSED}"]])
def test_systemd_accepts_the_unit(check: list[str], installed: Path) -> None:
    """
    systemd finds no fault with the unit, and little that it leaves open to a program that is taken over.
    """
    words = ["systemd-analyze", "--no-pager", *check, str(installed / UNIT.name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verify" not in check or done.stderr == ""


def test_signals_end_it_in_time() -> None:
    """
    systemd waits longer than the gateway needs to stop: first for clients, then for the disk.
    """
    [seconds] = _values("TimeoutStopSec")
    assert int(seconds.removesuffix("s")) > read_settings([], {}).stop_timeout_ms / 1000 + 10


def test_it_restarts_after_a_crash_only() -> None:
    """
    A stop by SIGTERM, as which the gateway ends, is a success for systemd.
    """
    assert _values("Restart") == ["on-failure"]
    with Kafka() as kafka:
        assert kafka.stop() == -15


def test_a_wrong_setting_is_not_tried_again(installed: Path) -> None:
    """
    The exit code for a setting that cannot be used ends the restarts; that of a folder in use by another gateway does
    not.
    """
    [command], [folder] = _values("ExecStart"), _values("WorkingDirectory")

    def exit_code(*options: str) -> str:
        words = [*shlex.split(_moved(command, installed)), *options]
        done = subprocess.run(words, cwd=_moved(folder, installed), capture_output=True, timeout=60, check=False)
        return str(done.returncode)

    assert [exit_code("--no-such-setting")] == _values("RestartPreventExitStatus")
    with Kafka("--broker", f"log:{installed}/var/lib/data", folder=installed):
        assert exit_code() not in ["0", *_values("RestartPreventExitStatus")]
