"""
`kgateway options`: the settings of the server, written from their table.
"""

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import page
from kgateway.config.settings import OPTIONS as SETTINGS
from kgateway.config.sources import Option

_PAGE = """# Configuration

Written by `kgateway options --markdown` from the table of settings; a test keeps this page and the table together.

Each setting has one name and may stand in three places. `num_partitions` is

1. `--num-partitions 8` or `--num-partitions=8` on the command line,
2. `KGATEWAY_NUM_PARTITIONS=8` in the environment,
3. `num_partitions = 8` in a TOML file, which `--config` or `KGATEWAY_CONFIG` names.

The first that gives a value decides; without any, the default below holds. A setting that may be repeated is written
once for each value on the command line, as an array in TOML, and with whitespace between the values in the environment.
It is replaced as a whole: values of two places are not mixed.

A name or a value that means nothing stops the start with a message that says where it stands, what is allowed and which
name may have been meant.

Sizes are bytes, or have a unit: `KiB`, `MiB`, `GiB`, `TiB`. Durations are milliseconds, or have a unit: `ms`, `s`,
`min`, `h`, `d`. In TOML a number is an integer, a size or duration with a unit is a string, and yes or no is `true` or
`false`. Elsewhere `on`, `off`, `true`, `false`, `1` and `0` do as well. Paths start from the folder where the gateway
runs; `--config`, which is read first, from the folder where it was started.

## Examples

A file, and a start with it (options of `twistd` itself, such as `-n`, stand before the word `kgateway`):

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

The same in the environment, as containers have it:

```sh
KGATEWAY_LISTEN=tcp:9092:interface=0.0.0.0
KGATEWAY_ADVERTISE=gateway.example.org:9092
KGATEWAY_MAX_REQUEST_BYTES=64MiB
KGATEWAY_MAX_IDLE_MS=30min
KGATEWAY_NUM_PARTITIONS=8
KGATEWAY_AUTO_CREATE_TOPICS=no
```

Several listeners have names, and each can have an address that its clients are told. Where none is advertised, they are
told the address they connected to, which is right unless something stands in between.

```sh
twistd -n kgateway \\
    --listen internal=tcp:9092:interface=10.0.0.5 \\
    --listen external=tcp:19092 --advertise external=kafka.example.org:443
```

In an endpoint string a colon inside an address is escaped: `tcp6:9092:interface=\\:\\:1`. An advertised IPv6 address
has brackets: `[2001:db8::5]:9092`.

## Settings

Kafka's name is that of the broker config that means the same.

"""


def as_text() -> str:
    return "\n".join(
        f"{f'{row.flag} {row.kind.metavar}':<44} {row.shown_default}".rstrip() for row in SETTINGS.values()
    )


def as_markdown() -> str:
    lines = ["| Setting | Default | What it is | What is allowed | Kafka's name |", "|---|---|---|---|---|"]
    return _PAGE + "\n".join([*lines, *map(_line, SETTINGS.values())])


def as_json() -> Json:
    return {"options": [_fields(row) for row in SETTINGS.values()]}


OPTIONS = page(as_text, as_markdown, as_json)


def _fields(row: Option) -> Json:
    return {
        "option": row.name,
        "default": row.shown_default or None,
        "meaning": row.meaning,
        "allowed": row.allowed,
        "kafka": row.kafka or None,
    }


def _line(row: Option) -> str:
    cells = [_code(row.name), _code(row.shown_default), row.meaning, row.allowed, _code(row.kafka)]
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else "none"
