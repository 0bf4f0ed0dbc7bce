"""Writes the HTML report: one file, no network, nothing to install.

In: record directories. Out: one page with tables (plain HTML, made here), the time series as JSON, and the script that draws
them.
Everything from a record is data: it is escaped where it becomes HTML, the JSON cannot end its script element, and a content
security policy lets the browser run only the scripts that this module put in, and load nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.report import loading, markup, palette, summary, units
from paceline.report.decimation import LIMIT
from paceline.report.loading import Flow, Link, Run, lookup
from paceline.report.markup import asset, escaped, policy
from paceline.report.payload import FLOWS_DRAWN, payload

#: Rows of the summary table; a run of 300,000 flows would make a page that no browser opens.
ROWS = 1000


def write_html(records: Sequence[Path], out: Path) -> Path:
    """Writes a report of ``records`` to the file ``out`` (replacing it) and returns its path.

    The page is a pure function of the records. It is written under a temporary name and renamed, so that ``out`` is never half
    a page.

    Raises:
        RecordError: a record is missing or unreadable.
        OSError: ``out`` cannot be written.
    """
    markup.write(_page(loading.load(records)), out)
    return Path(out)


def embed_json(data: object) -> str:
    """``data`` as compact JSON that is safe inside a ``<script>`` element: no character in it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _page(runs: Sequence[Run]) -> str:
    styles = [asset("vendor/uplot/uPlot.min.css"), asset("assets/report.css")]
    scripts = [asset("vendor/uplot/uPlot.iife.min.js"), asset("assets/report.js")]
    titles = list(dict.fromkeys(run.title for run in runs))
    flows = [(run, flow) for run in runs for flow in run.flows]
    links = [(run, link) for run in runs for link in run.links if link.summary.values]
    drawn = payload(runs)
    parts = {
        "policy": policy(styles, scripts),
        "title": escaped(titles[0] if len(titles) == 1 else f"{len(runs)} runs of {len(titles)} scenarios"),
        "subtitle": _subtitle(runs),
        "styles": "\n".join(f"<style>{style}</style>" for style in styles),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
        "summary": _flow_table(flows, len(runs)),
        "summary_note": _note(flows, runs),
        "links": _link_table(links, len(runs)),
        "checks": "".join(_checks(run) for run in runs),
        "scenarios": _scenarios(runs),
        "provenance": _provenance(runs),
        "series_note": escaped(_series_note(runs)),
        "data": embed_json(drawn),
    }
    template = asset("assets/template.html")
    # One pass: text that a record puts in is never searched for placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _subtitle(runs: Sequence[Run]) -> str:
    def spread(values: Sequence[object], one: str, many: str) -> str | None:
        seen = list(dict.fromkeys(str(value) for value in values if value is not None))
        if not seen:
            return None
        return f"{one} {', '.join(seen)}" if len(seen) <= 4 else f"{len(seen)} {many}"

    durations = [None if run.duration_s is None else f"{units.number(run.duration_s)} s" for run in runs]
    facts = [
        f"{len(runs)} run{'s' if len(runs) != 1 else ''}",
        spread([run.manifest.get("world") for run in runs], "world", "worlds"),
        spread(durations, "duration", "durations"),
        spread([run.manifest.get("seed") for run in runs], "seed", "seeds"),
        spread([run.manifest.get("paceline_version") for run in runs], "Paceline", "versions of Paceline"),
    ]
    return " · ".join(escaped(fact) for fact in facts if fact)


def _flow_table(rows: Sequence[tuple[Run, Flow]], run_count: int) -> str:
    rows = rows[:ROWS]
    columns = summary.flow_columns(rows)
    heads = [*(["Run"] if run_count > 1 else []), "Flow", "Controller"]
    lead = [
        [*([run.label] if run_count > 1 else []), flow.name, _swatch(flow.controller) + escaped(flow.controller)]
        for run, flow in rows
    ]
    return _table(heads, lead, columns, "summary", raw={"Controller"})


def _link_table(rows: Sequence[tuple[Run, Link]], run_count: int) -> str:
    rows = rows[:ROWS]
    if not rows:
        return ""
    heads = [*(["Run"] if run_count > 1 else []), "Link"]
    lead = [[*([run.label] if run_count > 1 else []), link.name] for run, link in rows]
    return f"<section><h2>Links</h2>{_table(heads, lead, summary.link_columns(rows), 'links')}</section>"


def _table(
    heads: Sequence[str],
    lead: Sequence[Sequence[str]],
    columns: Sequence[summary.TableColumn],
    name: str,
    raw: frozenset[str] | set[str] = frozenset(),
) -> str:
    """A table whose first columns are text (``lead``) and whose others are numbers. ``raw`` columns are HTML already."""

    def head(heading: str, unit: str, meaning: str, kind: str) -> str:
        shown = f"{escaped(heading)} <small>{escaped(unit)}</small>" if unit else escaped(heading)
        title = f' title="{escaped(meaning)}"' if meaning else ""
        return f'<th scope="col" class="{kind}"><button type="button"{title}>{shown}</button></th>'

    top = "".join(head(heading, "", "", "text") for heading in heads)
    top += "".join(head(column.heading, column.unit, column.meaning, "number") for column in columns)
    body = []
    for index, words in enumerate(lead):
        cells = [
            f'<td class="text">{word if heading in raw else escaped(word)}</td>'
            for heading, word in zip(heads, words, strict=True)
        ]
        for column in columns:
            key = column.keys[index]
            sort = "" if key is None else f' data-sort="{key!r}"'
            cells.append(f'<td class="number"{sort}>{escaped(column.texts[index])}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table class="sortable" id="table-{name}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _swatch(controller: str) -> str:
    mark = palette.mark(controller)
    return (
        f'<svg class="swatch" viewBox="-8 -8 16 16" aria-hidden="true" data-marker="{mark.marker}"'
        f' data-light="{mark.light}" data-dark="{mark.dark}"></svg>'
    )


def _note(flows: Sequence[tuple[Run, Flow]], runs: Sequence[Run]) -> str:
    notes = ["Rates, delays and percentiles are over the time after warm-up; counts are over the whole run."]
    if any(run.bottleneck for run in runs):
        notes.append("Link utilisation is that of the run's bottleneck, all flows together.")
    if len(flows) > ROWS:
        notes.append(f"The first {ROWS} of {len(flows)} flows are shown.")
    return escaped(" ".join(notes))


def _series_note(runs: Sequence[Run]) -> str:
    samples = max((len(samples.time_s) for run in runs for samples in run.samples()), default=0)
    notes = ["Drag to zoom all panels, double-click to reset. Click a name to hide or show it."]
    if samples > LIMIT:
        notes.append(
            f"Series of up to {samples:,} samples are thinned to at most {LIMIT:,} points: each time slice keeps its smallest and"
            " its largest value. The record holds every sample."
        )
    if any(len(run.flows) > FLOWS_DRAWN for run in runs):
        notes.append(f"The first {FLOWS_DRAWN} flows of each run are drawn.")
    return " ".join(notes)


def _checks(run: Run) -> str:
    if not run.checks:
        return f'<div><h3>{escaped(run.label)}</h3><p class="note">The record holds no checks.</p></div>'
    signs = {True: ("✓", "ok", "passed"), False: ("✗", "bad", "failed"), None: ("?", "unknown", "not known")}
    items = []
    for check in run.checks:
        sign, kind, word = signs[check.ok]
        detail = f" <span>{escaped(check.detail)}</span>" if check.detail else ""
        items.append(f'<li class="{kind}"><b role="img" aria-label="{word}">{sign}</b> {escaped(check.name)}{detail}</li>')
    return f'<div><h3>{escaped(run.label)}</h3><ul class="checks">{"".join(items)}</ul></div>'


def _scenarios(runs: Sequence[Run]) -> str:
    texts: dict[str, list[str]] = {}
    for run in runs:
        texts.setdefault(run.scenario_text, []).append(run.label)
    blocks = []
    for text, labels in texts.items():
        heading = f"<h3>{escaped('; '.join(labels))}</h3>" if len(texts) > 1 else ""
        body = f"<pre>{escaped(text.strip())}</pre>" if text.strip() else '<p class="note">The record holds no scenario text.</p>'
        blocks.append(heading + body)
    return "".join(blocks)


def _provenance(runs: Sequence[Run]) -> str:
    """What all runs share once, then what differs run by run."""
    facts = [_facts(run) for run in runs]
    shared = {key: value for key, value in facts[0].items() if all(other.get(key) == value for other in facts)}
    blocks = [_facts_list("All runs" if len(runs) > 1 else "", shared)]
    for run, own in zip(runs, facts, strict=True):
        blocks.append(_facts_list(run.label, {key: value for key, value in own.items() if key not in shared}))
    return "".join(blocks)


def _facts_list(heading: str, facts: Mapping[str, str]) -> str:
    if not facts:
        return ""
    rows = "".join(f"<dt>{escaped(key)}</dt><dd>{escaped(value)}</dd>" for key, value in facts.items())
    return (f"<h3>{escaped(heading)}</h3>" if heading else "") + f"<dl>{rows}</dl>"


def _facts(run: Run) -> dict[str, str]:
    """Where a run comes from and how to get it again, as text by name; what the record does not say is left out."""
    manifest = run.manifest
    command = manifest.get("command_line")
    commit = lookup(manifest, "git", "commit")
    if commit and lookup(manifest, "git", "dirty"):
        commit = f"{commit} (with uncommitted changes)"
    facts = {
        "Record": run.directory.name,
        "Command": " ".join(map(str, command)) if isinstance(command, list) else command,
        "World": manifest.get("world"),
        "Seed": manifest.get("seed"),
        "Paceline": manifest.get("paceline_version"),
        "Commit": commit,
        "Scenario file": lookup(manifest, "scenario", "path"),
        "Scenario SHA-256": lookup(manifest, "scenario", "sha256"),
        "Started": manifest.get("started"),
        "Wall time": _seconds(manifest.get("wall_s")),
        **_parameters(run),
        **_flat("Host", manifest.get("host")),
        **_flat("Engine", lookup(manifest, "result", "engine")),
    }
    return {key: str(value) for key, value in facts.items() if value not in (None, "")}


def _parameters(run: Run) -> dict[str, str]:
    """Every controller's parameters, by controller; flows that share them are named once."""
    rows = run.manifest.get("flows")
    found: dict[str, list[str]] = {}
    for row in rows if isinstance(rows, list) else []:
        params = lookup(row, "controller_params")
        if isinstance(params, dict) and params:
            values = ", ".join(f"{name} = {json.dumps(value)}" for name, value in params.items())
            texts = found.setdefault(f"Parameters of {lookup(row, 'controller')}", [])
            if values not in texts:
                texts.append(values)
    return {key: "; ".join(texts) for key, texts in found.items()}


def _seconds(value: object) -> str | None:
    number = loading.finite(value)
    return None if number is None else f"{units.number(number)} s"


def _flat(prefix: str, value: object) -> dict[str, object]:
    """Nested mappings as one level, the keys joined to ``prefix``; floats shortened, as they are for reading."""
    if isinstance(value, Mapping):
        pairs = [_flat(f"{prefix} {str(key).replace('_', ' ')}", inner) for key, inner in value.items()]
        return {key: inner for pair in pairs for key, inner in pair.items()}
    if isinstance(value, list):
        return {prefix: ", ".join(map(str, value))}
    return {prefix: units.number(value) if isinstance(value, float) else value}
