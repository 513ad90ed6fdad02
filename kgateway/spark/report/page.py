"""
A report as one self-contained page of HTML, in light and dark colours.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from kgateway.spark.report.facts import Keys, Lag, Latency, Part, Sizes, Times, TopicFacts
from kgateway.spark.report.plots import (
    Column,
    Line,
    Marks,
    Scale,
    at,
    byte_step,
    columns,
    in_bytes,
    in_time,
    lines,
    number_step,
    time_step,
    whole,
)

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #667080; --rule: #dfe3e8; --bar: #3572a5; --late: #d98324;
  --ground: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --quiet: #98a2b0; --rule: #343c47; --bar: #6aa5d8;
  --late: #eda95a; --ground: #171b21; } }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 940px; margin: 0 auto; padding: 24px 20px 80px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 22px; margin: 56px 0 0; padding-top: 12px; border-top: 2px solid var(--rule); overflow-wrap: anywhere; }
h3 { font-size: 16px; margin: 28px 0 4px; }
p { margin: 4px 0 10px; }
a { color: var(--bar); }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.quiet, figcaption, th { color: var(--quiet); }
figure { margin: 0 0 12px; }
figcaption { font-size: 13px; }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--quiet); }
.grid { stroke: var(--rule); }
.bar { fill: var(--bar); }
.bar:hover { fill: var(--late); }
.line { fill: none; stroke-width: 1.6; }
.line.median { stroke: var(--bar); } .dot.median { fill: var(--bar); }
.line.late { stroke: var(--late); } .dot.late { fill: var(--late); }
.key { margin-right: 12px; } .key::before { content: "\\25cf "; }
.key.median::before { color: var(--bar); } .key.late::before { color: var(--late); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { font-weight: normal; font-size: 13px; text-align: left; }
th, td { padding: 3px 18px 3px 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
.number { text-align: right; }
.beside { display: inline-block; height: 10px; min-width: 1px; background: var(--bar); }
"""


_NUMBERS = Scale(lambda value: f"{value:,.0f}", number_step)
_BYTES = Scale(in_bytes, byte_step)
_TIMES = Scale(in_time, number_step)
_MARKS = 8
_KEY = 60  # characters of a key that are shown


def page(of: str, made_ms: int, topics: Sequence[TopicFacts]) -> str:
    title = f"Topics of {escape(of)}"
    body = "\n".join([*_overview(topics), *(line for topic in topics for line in _section(topic))])
    return _PAGE.format(title=title, style=STYLE, made=whole(made_ms), body=body)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{style}</style>
<main>
<h1>{title}</h1>
<p class="quiet">Made by <code>kgateway spark report</code>, {made} UTC. All times are in UTC. Sizes are those
of keys and values, before compression.</p>
{body}
</main>
</html>
"""


def _overview(topics: Sequence[TopicFacts]) -> Iterator[str]:
    headings = ("topic", "partitions", "records", "size", "first", "last", "largest lag")
    yield from _table(headings, [_overview_row(topic) for topic in topics], numeric=(1, 2, 3, 6))


def _overview_row(topic: TopicFacts) -> list[str]:
    times = topic.times
    ends = (whole(times.first_ms), whole(times.last_ms)) if times else ("-", "-")
    lag = f"{max(lag.total for lag in topic.lags):,}" if topic.lags else "-"
    link = f'<a href="#{escape(topic.name)}">{escape(topic.name)}</a>'
    return [link, f"{len(topic.parts)}", f"{topic.records:,}", in_bytes(topic.bytes), *ends, lag]


def _section(topic: TopicFacts) -> Iterator[str]:
    yield f'<section id="{escape(topic.name)}"><h2>{escape(topic.name)}</h2>'
    if topic.times and topic.sizes and topic.keys:
        yield from _volume(topic.times, topic.records)
        yield from _latency(topic, topic.times)
        yield from _sizes(topic.sizes)
        yield from _parts(topic.parts)
        yield from _keys(topic.keys, topic.records)
    else:
        yield "<p>This topic has no records.</p>"
    yield from _lags(topic.lags)
    yield "</section>"


def _volume(times: Times, records: int) -> Iterator[str]:
    yield "<h3>Volume over time</h3>"
    yield f"<p>From {whole(times.first_ms)} to {whole(times.last_ms)}, by the timestamps of records,"
    yield f"{_whose(times, records)}. Each column covers {in_time(times.slot_ms)}.</p>"
    if times.outside:
        yield f"<p>Not drawn: {_count(times.outside, 'record')} with a time far outside this period, or with none.</p>"
    marks = _time_marks(times)
    when = [at_(times, slot.start_ms) for slot in times.slots]
    counts = [Column(slot.records, f"{at}: {slot.records:,}") for at, slot in zip(when, times.slots, strict=True)]
    sizes = [Column(slot.bytes, f"{at}: {in_bytes(slot.bytes)}") for at, slot in zip(when, times.slots, strict=True)]
    yield f"<figure><figcaption>Records</figcaption>{columns(counts, _NUMBERS, marks, 'records over time')}</figure>"
    yield f"<figure><figcaption>Bytes</figcaption>{columns(sizes, _BYTES, marks, 'bytes over time')}</figure>"


def _whose(times: Times, records: int) -> str:
    if not times.of_server:
        return "set by the producer"
    return (
        "set by the server when it appended the records"
        if times.of_server == records
        else "set by the producer or the server"
    )


def at_(times: Times, ms: int) -> str:
    """
    A time with its date, as precise as the slots.
    """
    return whole(ms) if times.slot_ms >= 1_000 else f"{whole(ms)}.{ms % 1_000:03d}"


def _time_marks(times: Times) -> Marks:
    step = max(time_step(times.last_ms - times.first_ms, _MARKS), times.slot_ms)
    marked = [(place, slot.start_ms) for place, slot in enumerate(times.slots) if slot.start_ms % step == 0]
    return Marks([(place, at(ms, step)) for place, ms in marked])


def _latency(topic: TopicFacts, times: Times) -> Iterator[str]:
    yield "<h3>Latency from the producer to the log</h3>"
    if topic.latency:
        yield from _latency_plot(topic.latency, times)
    elif not times.of_server:
        yield '<p class="quiet">Unknown: producers set the timestamps of this topic, so nothing shows when its records'
        yield " were appended. Set <code>message.timestamp.type=LogAppendTime</code>, and put the time of sending into"
        yield " a header or a field of each record.</p>"
    elif topic.sent is None:
        yield '<p class="quiet">Unknown: use <code>--sent-header</code> or <code>--sent-field</code> to name the header'
        yield " or field that contains the time at which a record was sent.</p>"
    else:
        yield f'<p class="quiet">Unknown: no record has the time at which it was sent in {escape(topic.sent)}.</p>'


def _latency_plot(latency: Latency, times: Times) -> Iterator[str]:
    yield f"<p>Half of the records were appended within {in_time(latency.median_ms)}, and 99% within"
    yield f" {in_time(latency.late_ms)}. The latency of {_count(latency.records, 'record')} is known.</p>"
    places = {slot.start_ms: place for place, slot in enumerate(times.slots)}
    median: list[float | None] = [None] * len(places)
    late = median.copy()
    for one in latency.slots:
        median[places[one.start_ms]], late[places[one.start_ms]] = one.median_ms, one.late_ms
    drawn = lines([Line("late", late), Line("median", median)], _TIMES, _time_marks(times), "latency over time")
    yield '<figure><figcaption><span class="key median">median</span> <span class="key late">99th percentile</span>'
    yield "</figcaption>"
    yield f"{drawn}</figure>"


def _sizes(sizes: Sizes) -> Iterator[str]:
    yield "<h3>Sizes of values</h3>"
    if not sizes.bins:
        yield "<p>No record has a value.</p>"
        return
    nulls = f" {_count(sizes.nulls, 'record')} {_have(sizes.nulls)} no value." if sizes.nulls else ""
    half, most = in_bytes(sizes.share_up_to(0.5)), in_bytes(sizes.share_up_to(0.99))
    yield f"<p>Half of the values have at most {half}, and 99% at most {most}; the largest has"
    yield f" {in_bytes(sizes.largest)}.{nulls}</p>"
    drawn = [Column(size.records, f"up to {in_bytes(size.up_to)}: {size.records:,}") for size in sizes.bins]
    every = -(-len(drawn) // 12)
    marks = Marks([(place + 0.5, in_bytes(size.up_to)) for place, size in enumerate(sizes.bins) if place % every == 0])
    yield "<figure><figcaption>Records by the size of their value in bytes</figcaption>"
    yield f"{columns(drawn, _NUMBERS, marks, 'sizes of values')}</figure>"


def _parts(parts: Sequence[Part]) -> Iterator[str]:
    yield "<h3>Partitions</h3>"
    most = max(part.records for part in parts) or 1
    rows = [
        [f"{part.index}", f"{part.start:,}", f"{part.end:,}", _bar(part.records, most), in_bytes(part.bytes)]
        for part in parts
    ]
    yield from _table(("partition", "from offset", "before", "records", "size"), rows, numeric=(0, 1, 2, 4))


def _keys(keys: Keys, records: int) -> Iterator[str]:
    yield "<h3>Keys</h3>"
    if not keys.distinct:
        yield "<p>No record has a key.</p>"
        return
    without = f" {_count(keys.without, 'record')} {_have(keys.without)} none." if keys.without else ""
    yield f"<p>{_count(keys.distinct, 'key')} in {_count(records - keys.without, 'record')}.{without}</p>"
    most = keys.most[0].records
    rows = [[f"<code>{escape(_shown(key.key))}</code>", _bar(key.records, most)] for key in keys.most]
    yield from _table(("most frequent", "records"), rows)


def _shown(key: bytes) -> str:
    """
    A key as text if it is text, otherwise in hexadecimal.
    """
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    shown = text if text.isprintable() and text else f"0x{key.hex()}"
    return shown if len(shown) <= _KEY else f"{shown[:_KEY]}…"


def _lags(lags: Sequence[Lag]) -> Iterator[str]:
    yield "<h3>Lag of groups</h3>"
    if not lags:
        yield "<p>No group has committed offsets for this topic.</p>"
        return
    most = max(lag.total for lag in lags) or 1
    rows = [
        [escape(lag.group_id), escape(lag.state), _bar(lag.total, most), escape(_by_part(lag))]
        for lag in sorted(lags, key=lambda lag: (-lag.total, lag.group_id))
    ]
    yield from _table(("group", "state", "records behind the end", "by partition"), rows)


def _by_part(lag: Lag) -> str:
    each = [
        f"{index}: {'nothing committed' if one is None else f'{one:,}'}" for index, one in sorted(lag.parts.items())
    ]
    return ", ".join(each[:_MARKS]) + (f" and {len(each) - _MARKS} more" if len(each) > _MARKS else "")


def _bar(value: int, most: int) -> str:
    return f'<span class="beside" style="width:{100 * value / most:.1f}px"></span> {value:,}'


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> Iterator[str]:
    kinds = ['class="number"' if place in numeric else "" for place in range(len(headings))]
    yield '<div class="wide"><table><tr>'
    yield "".join(f"<th {kind}>{text}</th>" for kind, text in zip(kinds, headings, strict=True))
    for row in rows:
        yield "<tr>" + "".join(f"<td {kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True))
    yield "</table></div>"
