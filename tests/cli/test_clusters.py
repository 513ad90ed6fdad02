"""
Clusters that `kgateway.toml` gives names.
"""

import json
from pathlib import Path

import pytest

from kgateway.cli.main import main
from kgateway.config.settings import read_settings
from kgateway.testing.kafka import Kafka
from tests.cli.tools import Tool

OF_TEAM = """
cluster = "dev"

[clusters.dev]
bootstrap = "dev.example.org:9092"

[clusters.staging]
bootstrap = ["a.example.org:9092", "b.example.org:9092"]
"""
OF_USER = """
cluster = "mine"

[clusters.mine]
bootstrap = "localhost:19092"

[clusters.dev]
bootstrap = "localhost:29092"
"""


@pytest.fixture
def of_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    The file of the user, which is not there; no variable names a cluster, and the current folder is empty.
    """
    for name in ("KGATEWAY_BOOTSTRAP", "KGATEWAY_CLUSTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/kgateway").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "config/kgateway/kgateway.toml"


def used(capsys: pytest.CaptureFixture[str]) -> str:
    """
    The server that commands use, and why.
    """
    assert main(["clusters"]) == 0
    return capsys.readouterr().out.splitlines()[-1].removeprefix("commands use ")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """
    The reason of a mistake.
    """
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    return capsys.readouterr().err.removeprefix(f"kgateway {arguments[0]}: ").rstrip("\n")


def test_each_cluster_is_listed_with_its_file(of_user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The file in the current folder comes before that of the user.
    """
    Path("kgateway.toml").write_text(OF_TEAM)
    of_user.write_text(OF_USER)
    assert main(["clusters"]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["CLUSTER", "BOOTSTRAP", "FROM"]
    assert [line.split() for line in lines] == [
        ["dev", "dev.example.org:9092", "kgateway.toml"],
        ["staging", "a.example.org:9092,b.example.org:9092", "kgateway.toml"],
        ["mine", "localhost:19092", str(of_user)],
        [],
        ["commands", "use", "dev.example.org:9092:", "cluster", "dev", "of", "kgateway.toml"],
    ]
    main(["clusters", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["clusters"][1] == {
        "cluster": "staging",
        "bootstrap": ["a.example.org:9092", "b.example.org:9092"],
        "file": "kgateway.toml",
    }
    assert told["used"]["cluster"] == "dev"


def test_without_a_file_the_default_is_used(of_user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert used(capsys) == "127.0.0.1:9092: the default"


def test_variables_come_before_the_default_of_a_file(
    of_user: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    An empty variable counts as unset; with both it is unclear which is meant.
    """
    of_user.write_text(OF_TEAM)
    assert used(capsys) == f"dev.example.org:9092: cluster dev of {of_user}"
    monkeypatch.setenv("KGATEWAY_CLUSTER", "staging")
    assert used(capsys).endswith(f": cluster staging of {of_user}")
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", "")
    assert used(capsys).endswith(f": cluster staging of {of_user}")
    monkeypatch.setenv("KGATEWAY_BOOTSTRAP", "other:9092")
    assert "KGATEWAY_BOOTSTRAP and KGATEWAY_CLUSTER are both set" in refused(capsys, "clusters")
    monkeypatch.delenv("KGATEWAY_CLUSTER")
    assert used(capsys) == "other:9092: $KGATEWAY_BOOTSTRAP"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[clusters.a]\nbootstarp = "h:1"', "has bootstarp, which has no meaning there; did you mean bootstrap?"),
        ('[clusters.a]\nbootstrap = "h:1"\ntls = true', "has tls, which has no meaning there"),
        ("[clusters.a]", 'needs bootstrap = "HOST:PORT"'),
        ("[clusters.a]\nbootstrap = 9092", 'needs bootstrap = "HOST:PORT"'),
        ("[clusters.a]\nbootstrap = []", 'needs bootstrap = "HOST:PORT"'),
        (
            '[clusters.a]\nbootstrap = "x:y:z"',
            "[clusters.a] in kgateway.toml has a bootstrap that cannot be used: 'x:y:z' ",
        ),
        (
            '[clusters.a]\nbootstrap = ["h:1", "h:0"]',
            "[clusters.a] in kgateway.toml has a bootstrap that cannot be used: 'h:0' ",
        ),
        ('[cluster.a]\nbootstrap = "h:1"', "has [cluster.a]; did you mean [clusters.a]?"),
        ("cluster = 1", "must be the name of a cluster"),
        ('clusters = ["a"]', "must be tables, such as [clusters.dev]"),
        ('clutser = "a"', "has clutser, which has no meaning there; did you mean cluster?"),
        ('cluster = "stagin"\n[clusters.staging]\nbootstrap = "h:1"', "no cluster stagin; did you mean staging?"),
        ("[clusters", "is not TOML"),
    ],
)
def test_a_mistake_in_a_file_is_reported(
    of_user: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    Path("kgateway.toml").write_text(text)
    told = refused(capsys, "clusters")
    assert "kgateway.toml" in told
    assert reason in told


def test_a_file_may_have_the_settings_of_a_gateway_too(of_user: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The tools skip the settings, and the gateway skips the clusters and the variable that names one.
    """
    Path("kgateway.toml").write_text(f"num_partitions = 8\n{OF_TEAM}")
    assert used(capsys).startswith("dev.example.org:9092")
    environment = {"KGATEWAY_CLUSTER": "dev", "KGATEWAY_CONFIG": "kgateway.toml"}
    assert read_settings([], environment).num_partitions == 8


def test_commands_connect_to_the_cluster_that_is_named(of_user: Path) -> None:
    """
    The command line comes before variables and files; a file is not even read where it gives an address.
    """
    file = Path("kgateway.toml")
    with Kafka("--broker", "memory:") as kafka:
        file.write_text(f'[clusters.here]\nbootstrap = "{kafka.bootstrap}"\n[clusters.gone]\nbootstrap = "127.0.0.1:1"')
        tool = Tool("127.0.0.1:1")
        assert tool("topics", "list", "--cluster", "here").lines == ["there are no topics"]
        tool.environment |= {"KGATEWAY_BOOTSTRAP": "", "KGATEWAY_CLUSTER": "here"}
        assert tool("topics", "list").lines == ["there are no topics"]
        ended = tool("topics", "list", "--cluster", "gone")
        assert "nothing listens at 127.0.0.1:1; that is cluster gone of kgateway.toml" in ended.err
        assert tool("topics", "list", "--cluster", "her").code == 2
        assert tool("topics", "list", "--cluster", "here", "--bootstrap", kafka.bootstrap).code == 2
        file.write_text("[")
        assert tool("topics", "list", "--bootstrap", kafka.bootstrap).lines == ["there are no topics"]
