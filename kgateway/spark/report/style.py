"""
How a report looks, by day and by night.
"""

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
