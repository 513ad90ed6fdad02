"""
The settings: their sources, and refusals of wrong ones.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kgateway.config.listeners import Advertised, Listener
from kgateway.config.settings import OPTIONS, Settings, machine_memory_bytes, read_settings
from kgateway.config.sources import Option, SettingsError

ROWS = pytest.mark.parametrize("row", OPTIONS.values(), ids=OPTIONS)


def read(*arguments: str, toml: str | None = None, **environ: str) -> Settings:
    """
    Settings from options, variables (without their prefix) and a file in the folder of the test.
    """
    if toml is not None:
        Path("gateway.toml").write_text(toml)
        environ.setdefault("CONFIG", "gateway.toml")
    return read_settings(arguments, {f"KGATEWAY_{name}": text for name, text in environ.items()})


def refusal(*arguments: str, toml: str | None = None, **environ: str) -> str:
    with pytest.raises(SettingsError) as error:
        read(*arguments, toml=toml, **environ)
    return str(error.value)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_defaults_suffice() -> None:
    """
    A gateway needs no setting to run.
    """
    assert read() == Settings()
    assert Settings().listen == (Listener("plaintext", "tcp:9092:interface=127.0.0.1"),)


@ROWS
def test_a_default_can_be_written(row: Option) -> None:
    """
    The default as shown is read as the default value.
    """
    texts = row.shown_default.split() if row.repeats else [row.shown_default] * (row.default is not None)
    values = [row.kind.parse(text) for text in texts]
    assert values == (list(row.default) if row.repeats else [row.default] * (row.default is not None))


@ROWS
def test_a_setting_has_the_same_name_everywhere(row: Option) -> None:
    """
    Field, option and variable differ in their spelling only.
    """
    assert row.flag == f"--{row.name.replace('_', '-')}"
    assert row.variable == f"KGATEWAY_{row.name.upper()}"


@pytest.mark.parametrize(
    ("arguments", "toml", "environ", "expected"),
    [
        ([], "num_partitions = 5", {}, 5),
        ([], "num_partitions = 5", {"NUM_PARTITIONS": "6"}, 6),
        (["--num-partitions", "7"], "num_partitions = 5", {"NUM_PARTITIONS": "6"}, 7),
        (["--num-partitions=7"], "", {"NUM_PARTITIONS": "6"}, 7),
        (["--num-partitions=7", "--num-partitions=8"], "", {}, 8),
    ],
)
def test_the_nearest_source_decides(arguments: list[str], toml: str, environ: dict[str, str], expected: int) -> None:
    """
    The command line precedes the environment, which precedes the file; of an option given twice the last counts.
    """
    assert read(*arguments, toml=toml, **environ).num_partitions == expected


def test_the_command_line_names_the_file() -> None:
    """
    `--config` is a setting like others, so the environment's file is then not read.
    """
    Path("mine.toml").write_text("node_id = 7")
    settings = read("--config", "mine.toml", CONFIG="nowhere.toml")
    assert (settings.node_id, settings.config) == (7, "mine.toml")


@pytest.mark.parametrize(
    ("arguments", "toml", "environ"),
    [
        (["--handlers", "one", "--handlers=two.three"], None, {"HANDLERS": "four"}),
        ([], None, {"HANDLERS": " one\ttwo.three\n"}),
        ([], 'handlers = ["one", "two.three"]', {}),
    ],
)
def test_a_repeated_setting_has_all_its_values(arguments: list[str], toml: str | None, environ: dict[str, str]) -> None:
    """
    Options are repeated, a variable has words, TOML has an array; sources are not mixed.
    """
    assert read(*arguments, toml=toml, **environ).handlers == ("one", "two.three")


def test_a_variable_can_empty_a_list() -> None:
    """
    An empty variable replaces the list of the file.
    """
    assert read(toml='handlers = ["one"]', HANDLERS="").handlers == ()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_request_bytes", "100000", 100_000),
        ("max_request_bytes", "64KiB", 64 << 10),
        ("max_request_bytes", "64MiB", 64 << 20),
        ("request_memory_bytes", "1GiB", 1 << 30),
        ("request_memory_bytes", "1TiB", 1 << 40),
        ("max_idle_ms", "5000", 5000),
        ("max_idle_ms", "5ms", 5),
        ("max_idle_ms", "30s", 30_000),
        ("max_idle_ms", "10min", 600_000),
        ("max_idle_ms", "2h", 7_200_000),
        ("max_idle_ms", "7d", 604_800_000),
        ("auto_create_topics", "no", False),
        ("auto_create_topics", "Off", False),
        ("auto_create_topics", "false", False),
        ("auto_create_topics", "0", False),
        ("auto_create_topics", "yes", True),
        ("auto_create_topics", "on", True),
        ("auto_create_topics", "TRUE", True),
        ("auto_create_topics", "1", True),
        ("log_level", "warn", "warn"),
        ("replication_factor_policy", "strict", "strict"),
        ("broker", "log:/var/lib/kgateway", "log:/var/lib/kgateway"),
        ("broker", "a+b-c.2:", "a+b-c.2:"),
        ("handlers", "été.two_3", ("été.two_3",)),
        ("node_id", "0", 0),
        ("stop_timeout_ms", "0", 0),
        ("num_partitions", "10000", 10_000),
        ("control_socket", "x" * 100, "x" * 100),
        ("listen", "a=tcp:1", (Listener("a", "tcp:1"),)),
        ("advertise", "host:1", (Advertised("plaintext", "host", 1),)),
    ],
)
def test_values_are_converted(name: str, text: str, value: object) -> None:
    """
    Numbers, sizes, durations, words and addresses are converted to the server's types.
    """
    row = OPTIONS[name]
    assert getattr(read(row.flag, text), name) == value


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("num_partitions", "0", "an integer from 1 to 10000"),
        ("num_partitions", "10001", "an integer from 1 to 10000"),
        ("num_partitions", "4KiB", "an integer from 1 to 10000"),
        ("num_partitions", "1_000", "an integer from 1 to 10000"),
        ("node_id", "-1", "an integer from 0 to 2147483647"),
        ("node_id", "2147483648", "an integer from 0 to 2147483647"),
        ("default_replication_factor", "32768", "an integer from 1 to 32767"),
        ("max_request_bytes", "64MB", "a size from 1 to 2147483647, such as 100000 or 64MiB"),
        ("max_request_bytes", "2GiB", "a size from 1 to 2147483647, such as 100000 or 64MiB"),
        ("max_request_bytes", "9" * 5000, "a size from 1 to 2147483647, such as 100000 or 64MiB"),
        ("max_idle_ms", "1.5s", "milliseconds from 1 to 2147483647, or a duration such as 30s or 10min"),
        ("max_idle_ms", "", "milliseconds from 1 to 2147483647, or a duration such as 30s or 10min"),
        ("auto_create_topics", "maybe", "yes or no"),
        ("log_level", "loud", "debug, info, warn, error or critical"),
        ("replication_factor_policy", "clam", "clamp or strict"),
        ("broker", "memory", "SCHEME:REST, such as log:FOLDER or memory:"),
        ("broker", "/tmp/log", "SCHEME:REST, such as log:FOLDER or memory:"),
        ("handlers", "my-handlers", "a dotted Python name"),
        ("handlers", "my..handlers", "a dotted Python name"),
        ("handlers", "2nd", "a dotted Python name"),
        ("port_file", "", "a path"),
        ("port_file", "a\0b", "a path"),
        (
            "control_socket",
            "é" * 50 + "e",
            "a path of at most 100 bytes, the limit of Unix socket addresses",
        ),
    ],
)
def test_a_wrong_value_is_refused(name: str, text: str, allowed: str) -> None:
    """
    The refusal has the value's place, the value, and what is allowed.
    """
    row = OPTIONS[name]
    assert refusal(f"{row.flag}={text}") == f"{row.flag} is {text!r}: it must be {allowed}"


@pytest.mark.parametrize(
    ("arguments", "toml", "environ", "place"),
    [
        (["--log-level", "loud"], None, {}, "--log-level"),
        ([], None, {"LOG_LEVEL": "loud"}, "KGATEWAY_LOG_LEVEL"),
        ([], 'log_level = "loud"', {}, "log_level in gateway.toml"),
    ],
)
def test_a_refusal_names_the_source(
    arguments: list[str], toml: str | None, environ: dict[str, str], place: str
) -> None:
    """
    The source is an option, a variable, or a key and file.
    """
    assert refusal(*arguments, toml=toml, **environ).startswith(f"{place} is 'loud': ")


@pytest.mark.parametrize("name", ["listen", "advertise"])
def test_a_refusal_of_an_address_names_the_source(name: str) -> None:
    """
    The message of an address parser is completed by the source, too.
    """
    assert refusal(OPTIONS[name].flag, "2nd=a:1").startswith(f"--{name} is '2nd=a:1': '2nd' is not a valid name")


@pytest.mark.parametrize(
    ("arguments", "toml", "environ", "unknown", "meant"),
    [
        (["--num-partition", "3"], None, {}, "there is no option --num-partition", "--num-partitions"),
        (["--num_partitions=3"], None, {}, "there is no option --num_partitions", "--num-partitions"),
        (["--node", "3"], None, {}, "there is no option --node", "--node-id"),
        (["--port=9093"], None, {}, "there is no option --port", "--listen"),
        ([], 'host = "0.0.0.0"', {}, "gateway.toml has host, which is not a setting", "listen"),
        ([], None, {"NODE": "3"}, "the environment has KGATEWAY_NODE, which is not a setting", "KGATEWAY_NODE_ID"),
        ([], "num-partitions = 3", {}, "gateway.toml has num-partitions, which is not a setting", "num_partitions"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(
    arguments: list[str], toml: str | None, environ: dict[str, str], unknown: str, meant: str
) -> None:
    """
    The suggestion has the spelling of its source.
    """
    assert refusal(*arguments, toml=toml, **environ) == f"{unknown}; did you mean {meant}?"


@pytest.mark.parametrize(
    ("arguments", "toml", "environ", "message"),
    [
        (["-n"], None, {}, "there is no option -n"),
        (["--pidfile=x"], None, {}, "there is no option --pidfile"),
        ([], None, {"SPEED": "9"}, "the environment has KGATEWAY_SPEED, which is not a setting"),
        ([], "[num]\npartitions = 3", {}, "gateway.toml has num, which is not a setting"),
    ],
)
def test_an_unknown_name_gets_no_guess(
    arguments: list[str], toml: str | None, environ: dict[str, str], message: str
) -> None:
    """
    The refusal says where names are listed; the common prefix of the variables is no likeness.
    """
    assert refusal(*arguments, toml=toml, **environ) == f"{message}; `kgateway options` lists all settings"


@pytest.mark.parametrize("arguments", [["--node-id"], ["--node-id", "--log-level", "info"]])
def test_an_option_without_a_value_is_refused(arguments: Sequence[str]) -> None:
    """
    The next option is not read as the value.
    """
    assert refusal(*arguments) == "--node-id needs a value: an integer from 0 to 2147483647"


def test_retention_may_be_unlimited() -> None:
    """
    As in Kafka's log.retention.ms, -1 means no limit; all other negative numbers are refused.
    """
    assert read("--retention-ms", "-1").retention_ms == -1
    assert refusal("--retention-ms", "-2") == (
        "--retention-ms is '-2': it must be milliseconds from 0 to 9223372036854775807, or a duration such as 30s or "
        "10min, or -1 for no limit"
    )


def test_a_positional_argument_is_refused() -> None:
    """
    A second value needs its option again.
    """
    message = "'two' belongs to no option: write --NAME VALUE, once for each value"
    assert refusal("--handlers", "one", "two") == message


def test_a_value_may_have_equals_signs() -> None:
    """
    Only the first equals sign separates the value from its option.
    """
    assert read("--listen=a=tcp:1:interface=127.0.0.1").listen == (Listener("a", "tcp:1:interface=127.0.0.1"),)


@pytest.mark.parametrize(
    "environ",
    [
        {"SERVICE_HOST": "10.0.0.1"},
        {"SERVICE_PORT": "9092"},
        {"SERVICE_PORT_KAFKA": "9092"},
        {"HEADLESS_SERVICE_HOST": "10.0.0.1"},
        {"PORT": "tcp://10.0.0.1:9092"},
        {"PORT_9092_TCP": "tcp://10.0.0.1:9092"},
        {"PORT_9092_TCP_ADDR": "10.0.0.1"},
    ],
)
def test_variables_of_kubernetes_are_no_settings(environ: dict[str, str]) -> None:
    """
    A service called kgateway puts them into every container, and the gateway runs all the same.
    """
    assert read(**environ) == Settings()


def test_the_choice_of_modules_is_no_setting() -> None:
    """
    KGATEWAY_PURE is read before any setting.
    """
    assert read(PURE="1") == Settings()


def test_other_variables_are_ignored() -> None:
    """
    Only variables with the prefix are settings.
    """
    assert read_settings([], {"NODE_ID": "7", "XKGATEWAY_NODE_ID": "7"}) == Settings()


@pytest.mark.parametrize(
    ("toml", "found", "wanted"),
    [
        ('node_id = "7"', "string", "integer"),
        ("node_id = true", "boolean", "integer"),
        ("node_id = 1979-05-27", "date or time", "integer"),
        ("node_id = [1]", "array", "integer"),
        ("max_idle_ms = 1.5", "float", "integer or string"),
        ('auto_create_topics = "no"', "string", "boolean"),
        ("listen = 9092", "integer", "string or array of string"),
        ('listen = ["tcp:1", 2]', "integer", "string or array of string"),
        ('listen = [["tcp:1"]]', "array", "string or array of string"),
        ("broker = {}", "table", "string"),
    ],
)
def test_a_wrong_type_in_the_file_is_refused(toml: str, found: str, wanted: str) -> None:
    """
    A TOML value has a type, so a number in quotes is not a number.
    """
    key, _, _ = toml.partition(" ")
    assert refusal(toml=toml) == f"{key} in gateway.toml is of type {found}: it must be of type {wanted}"


@pytest.mark.parametrize(
    ("toml", "name", "value"),
    [
        ("max_idle_ms = 5000", "max_idle_ms", 5000),
        ('max_idle_ms = "5s"', "max_idle_ms", 5000),
        ("retention_ms = -1", "retention_ms", -1),
        ('retention_ms = "1d"', "retention_ms", 86_400_000),
        ('max_request_bytes = "1MiB"', "max_request_bytes", 1 << 20),
        ("auto_create_topics = false", "auto_create_topics", False),
        ("auto_create_topics = true", "auto_create_topics", True),
        ('listen = "a=tcp:1"', "listen", (Listener("a", "tcp:1"),)),
        ('handlers = "acme.handlers"', "handlers", ("acme.handlers",)),
        ('listen = ["a=tcp:1", "b=tcp:2"]', "listen", (Listener("a", "tcp:1"), Listener("b", "tcp:2"))),
    ],
)
def test_the_file_has_types(toml: str, name: str, value: Any) -> None:
    """
    Integers, strings, booleans and arrays are the TOML types of settings.
    """
    assert getattr(read(toml=toml), name) == value


def test_a_file_cannot_name_another() -> None:
    assert refusal(toml='config = "other.toml"').startswith("config in gateway.toml: only the command line and ")


@pytest.mark.parametrize(
    ("content", "reason", "where"),
    [
        (None, "which cannot be read", "No such file or directory"),
        (b"node_id = 1\nnum_partitions = = 2\n", "which is not TOML", "at line 2, column 18"),
        (b"node_id = 1\nnode_id = 2\n", "which is not TOML", "at line 2, column "),
        (b"# \xff", "which is not TOML", "in position 2"),
    ],
)
def test_an_unreadable_file_is_refused(content: bytes | None, reason: str, where: str) -> None:
    """
    The refusal says what named the file, and where in it the mistake is.
    """
    if content is not None:
        Path("gateway.toml").write_bytes(content)
    message = refusal("--config", "gateway.toml")
    assert message.startswith(f"--config is gateway.toml, {reason}: ")
    assert where in message
    assert refusal(CONFIG="gateway.toml") == message.replace("--config", "KGATEWAY_CONFIG")


def test_a_folder_is_no_file() -> None:
    """
    The refusal has the system's reason.
    """
    Path("folder").mkdir()
    assert refusal("--config", "folder") == "--config is folder, which cannot be read: Is a directory"


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["--listen", "tcp:1", "--listen", "tcp:2"], {}, "--listen: two listeners are called plaintext; "),
        ([], {"LISTEN": ""}, "KGATEWAY_LISTEN: at least one listener is needed"),
        (["--advertise", "tls=host:1"], {}, "--advertise: there is no listener tls; "),
        (["--listen", "tls=tcp:1"], {"ADVERTISE": "plaintext=host:1"}, "KGATEWAY_ADVERTISE: there is no listener "),
    ],
)
def test_listeners_and_addresses_are_compared(arguments: list[str], environ: dict[str, str], message: str) -> None:
    """
    Names are checked after all sources are read, and the refusal has the source of the wrong one.
    """
    assert refusal(*arguments, **environ).startswith(message)


def test_an_address_gets_the_name_of_its_listener() -> None:
    assert read("--listen", "tls=tcp:1", ADVERTISE="host:1").advertise == (Advertised("tls", "host", 1),)


def test_memory_has_room_for_a_request() -> None:
    """
    A limit for all requests below the limit for one is refused.
    """
    message = "--request-memory-bytes is 1000: it must be 0, or at least max_request_bytes, which is 1001"
    assert refusal("--request-memory-bytes", "1000", MAX_REQUEST_BYTES="1001") == message
    assert read("--request-memory-bytes", "1000", MAX_REQUEST_BYTES="1000").request_memory_bytes == 1000


@pytest.mark.parametrize("what", ["session_timeout", "heartbeat_interval", "assignment_interval"])
def test_minimums_are_below_maximums(what: str) -> None:
    """
    A minimum above its maximum is refused, whichever of the two is set.
    """
    least, most = f"group_consumer_min_{what}_ms", f"group_consumer_max_{what}_ms"
    high = OPTIONS[most].default
    said = f"{least} is {high + 1}, and must be at most {most}, which is {high}"
    assert refusal(f"{OPTIONS[least].flag}={high + 1}") == f"{OPTIONS[least].flag}: {said}"
    wrong = refusal(
        GROUP_MIN_SESSION_TIMEOUT_MS="7000", **{f"GROUP_CONSUMER_MIN_{what.upper()}_MS": "9", most.upper(): "8"}
    )
    assert wrong == f"KGATEWAY_{least.upper()}: {least} is 9, and must be at most {most}, which is 8"
    assert "max" in refusal(GROUP_MAX_SESSION_TIMEOUT_MS="5999")
    equal = read(f"{OPTIONS[least].flag}={high}")
    assert getattr(equal, least) == getattr(equal, most) == high


@pytest.mark.parametrize(
    ("settings", "machine_bytes", "expected"),
    [
        (Settings(), 2 << 30, 512 << 20),
        (Settings(), 64 << 30, 1 << 30),
        (Settings(), 64 << 20, 100 << 20),
        (Settings(max_request_bytes=1 << 20), 64 << 20, 16 << 20),
        (Settings(request_memory_bytes=3 << 30), 2 << 30, 3 << 30),
    ],
)
def test_default_memory_follows_the_machine(settings: Settings, machine_bytes: int, expected: int) -> None:
    """
    The default is a quarter of the machine, at most 1 GiB, and at least the largest request.
    """
    assert settings.request_budget_bytes(machine_bytes) == expected


def test_memory_of_the_machine_is_in_bytes() -> None:
    assert machine_memory_bytes() > 64 << 20


@pytest.mark.parametrize(("written", "limited"), [(str(32 << 20), True), ("max", False), (None, False)])
def test_memory_of_a_container_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None, limited: bool
) -> None:
    """
    The limit of a control group precedes the memory of the machine.
    """
    limit = tmp_path / "memory.max"
    if written:
        limit.write_text(written)
    monkeypatch.setattr("kgateway.config.settings._CONTAINER_LIMITS", (str(limit),))
    assert (machine_memory_bytes() == 32 << 20) is limited
