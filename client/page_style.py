"""The style sheet of a decision's page: light and dark by the reader's own setting."""

from __future__ import annotations

COLORS = 6
"""Colours of marks, `--c0` to `--c5`; a seventh question begins again."""

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #ffffff; --ink: #1d1f23; --quiet: #646a73; --line: #dcdfe4;
  --bar: #2f7d4f; --track: #eceef1; --wrong: #b3261e;
  --c0: #ffe38a; --c1: #a9e3f0; --c2: #bfe8b0; --c3: #efc4f2; --c4: #c3d1ff; --c5: #ffc9bd;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181c; --ink: #e6e8eb; --quiet: #9aa1aa; --line: #333840;
    --bar: #57b37f; --track: #262a30; --wrong: #ff8a80;
    --c0: #665200; --c1: #0f5866; --c2: #2c5a22; --c3: #633068; --c4: #31427f; --c5: #73352a;
  }
}
body {
  background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, sans-serif;
  margin: 2rem auto; max-width: 56rem; padding: 0 1rem;
}
h1 { font-size: 1.3rem; }
h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th {
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; padding: .35rem .8rem .35rem 0;
  text-align: left; vertical-align: top;
}
th, .quiet { color: var(--quiet); font-weight: normal; }
.text {
  border: 1px solid var(--line); border-radius: .4rem; line-height: 2; overflow-wrap: anywhere;
  padding: .8rem 1rem; white-space: pre-wrap;
}
mark { border-radius: .2rem; color: inherit; padding: .1rem 0; }
.tag {
  border-radius: .2rem; font-size: .7rem; margin: 0 .2rem; padding: .05rem .3rem; vertical-align: super;
}
.gap { color: var(--quiet); font-style: italic; }
.swatch {
  border-radius: .2rem; display: inline-block; height: .9rem; margin-right: .4rem; vertical-align: -.1rem;
  width: .9rem;
}
.row {
  align-items: center; display: grid; gap: .6rem; grid-template-columns: minmax(5rem, 12rem) 1fr 4.5rem;
}
.track { background: var(--track); border-radius: .2rem; height: .7rem; min-width: 4rem; overflow: hidden; }
.bar { background: var(--bar); height: 100%; }
.percent { font-variant-numeric: tabular-nums; text-align: right; }
.wrong { color: var(--wrong); font-weight: bold; }
.c0 { background: var(--c0); }
.c1 { background: var(--c1); }
.c2 { background: var(--c2); }
.c3 { background: var(--c3); }
.c4 { background: var(--c4); }
.c5 { background: var(--c5); }
"""
