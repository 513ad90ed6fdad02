"""
`kgateway options`: the settings of the server, written from their table.
"""

from kgateway.cli.common.parser import page
from kgateway.config.settings import OPTIONS as SETTINGS
from kgateway.config.sources import Option

_PAGE = """# Configuration

`kgateway options --markdown` generates this page from the table of settings.

Each setting can be set in three places, under the same name. `num_partitions` is

1. `--num-partitions 8` or `--num-partitions=8` on the command line,
2. `KGATEWAY_NUM_PARTITIONS=8` in the environment,
3. `num_partitions = 8` in a TOML file, which `--config` or `KGATEWAY_CONFIG` names.

The first of these that has a value wins; otherwise the default below applies. Write a setting with several values as a
repeated option on the command line, as an array in TOML, and separated by whitespace in the environment. Lists from
different sources are not merged; the highest-priority one wins.

The gateway does not start with an unknown name or an invalid value. The message says where it is, what is allowed, and
which name may have been meant.

Sizes are bytes, or have a unit: `KiB`, `MiB`, `GiB`, `TiB`. Durations are milliseconds, or have a unit: `ms`, `s`,
`min` or `m`, `h`, `d`. In TOML a number is an integer, a size or duration with a unit is a string, and yes or no is
`true` or `false`. Elsewhere `on`, `off`, `true`, `false`, `1` and `0` also work. Paths are relative to the folder in
which the gateway runs, except `--config`, which is relative to the folder in which it was started.

## Examples

A file, and a command that uses it (options of `twistd` itself, such as `-n`, come before the word `kgateway`):

```toml
listen = ["tcp:9092:interface=0.0.0.0"]
advertise = ["gateway.example.org:9092"]
max_request_bytes = "64MiB"
max_idle_ms = "30min"
num_partitions = 8
auto_create_topics = false
```

```sh
twistd -n kgateway --config gateway.toml --log-level debug
```

The same in the environment, for example of a container:

```sh
KGATEWAY_LISTEN=tcp:9092:interface=0.0.0.0
KGATEWAY_ADVERTISE=gateway.example.org:9092
KGATEWAY_MAX_REQUEST_BYTES=64MiB
KGATEWAY_MAX_IDLE_MS=30min
KGATEWAY_NUM_PARTITIONS=8
KGATEWAY_AUTO_CREATE_TOPICS=no
```

Several listeners need names. Each can advertise an address to its clients; by default clients are told the address they
connected to, which is right unless a proxy or a port mapping is in between.

```sh
twistd -n kgateway \\
    --listen internal=tcp:9092:interface=10.0.0.5 \\
    --listen external=tcp:19092 --advertise external=kafka.example.org:443
```

In an endpoint string, escape colons inside an address: `tcp6:9092:interface=\\:\\:1`. An advertised IPv6 address
has brackets: `[2001:db8::5]:9092`.

## Settings

"Kafka's name" is the broker config with the same meaning.

"""


def as_text() -> str:
    return "\n".join(
        f"{f'{row.flag} {row.kind.metavar}':<44} {row.shown_default}".rstrip() for row in SETTINGS.values()
    )


def as_markdown() -> str:
    lines = ["| Setting | Default | Meaning | Allowed values | Kafka's name |", "|---|---|---|---|---|"]
    return _PAGE + "\n".join([*lines, *map(_line, SETTINGS.values())])


OPTIONS = page(as_text, as_markdown)


def _line(row: Option) -> str:
    cells = [_code(row.name), _code(row.shown_default), row.meaning, row.allowed, _code(row.kafka)]
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else "none"
