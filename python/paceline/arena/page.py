"""The page of an arena: ranking, pictures, every trace, and how to hold it again, in one file.

In: an :class:`Arena`. Out: HTML that needs no script and no network. It depends on the arena alone.
"""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from paceline.arena.drawing import Point, scatter, styles, swatch
from paceline.arena.result import Arena, between, headings, links_text, notes, number, row
from paceline.arena.running import build
from paceline.arena.standing import OnLink, Standing, deserted, geometric_mean
from paceline.report.markup import asset, escaped, policy
from paceline.summary import ABSENT

#: What a ratio must reach to have each of the four tints of the table.
_TINTS = (1.05, 1.25, 2.0, 5.0)

_MEASURES = (
    (
        "share of capacity",
        "Bytes on the wire that were delivered, headers included, over what the trace could have carried meanwhile.",
    ),
    (
        "signal delay",
        "How old the newest information about the path is: the delay of a packet sent in a millisecond, and one more for every "
        "millisecond before it in which nothing was sent. The 95th percentile over all milliseconds, without propagation. Who "
        "sends seldom has a long one, as has who keeps a queue. This is the delay that the CS 244 contest scores.",
    ),
    ("power", "Throughput in Mbit/s over the 95th percentile of the signal delay in s: the contest's score."),
    (
        "means",
        "Over traces and seeds all means are geometric. A trace counts the same however fast it is, and a ratio of powers is the "
        "ratio of shares over the ratio of delays.",
    ),
    (
        "front",
        "The Pareto front: controllers that no other beats in throughput and delay at once, and with how many of the seeds so.",
    ),
    (
        "seeds",
        "Seed 0 is the trace as recorded. With any other seed a run begins at another moment of the trace and goes round, data "
        "and ACKs at the same moment; the seed is also that of all random draws. Seeds are not other links: the 95 % interval "
        "says how much depends on the moment and on chance, and nothing about links that are not here.",
    ),
)


def page(arena: Arena, folder: Path) -> str:
    """The page; ``folder`` is where the scenarios of the cells are, for what the page says about them."""
    standings = arena.standings
    sheets = [asset("assets/report.css"), _style(arena)]
    facts = [arena.size, f"world {arena.world}", f"Paceline {build()}"]
    sections = [
        ("Ranking", _ranking(arena, standings) + "".join(f'<p class="note">{escaped(note)}</p>' for note in notes(arena))),
        ("Throughput against delay", _overall(arena, standings)),
        ("Power on every trace", _heat(arena, standings)),
        ("Trace by trace", _pictures(arena, standings) + _tables(arena, standings)),
        ("What the measures mean", _list([(name, escaped(text)) for name, text in _MEASURES])),
        ("How to hold it again", _again(arena, folder)),
    ]
    body = "".join(f"<section><h2>{name}</h2>{content}</section>" for name, content in sections)
    sheet_tags = "".join(f"<style>{sheet}</style>" for sheet in sheets)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(sheets, [])}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>Arena: {escaped(arena.size)}</title><link rel="icon" href="data:,">{sheet_tags}</head>\n'
        f"<body><header><h1>Arena</h1><p>{escaped(' · '.join(facts))}</p></header>\n<main>{body}</main></body></html>\n"
    )


def _style(arena: Arena) -> str:
    own = (Path(__file__).parent / "arena.css").read_text(encoding="utf-8")
    return own + styles(contestant.name for contestant in arena.contestants)


def _ranking(arena: Arena, standings: Sequence[Standing]) -> str:
    heads = headings(arena)
    rows = []
    for standing in standings:
        place, name, *numbers = row(standing, arena)
        rows.append(f"<tr{_reference(standing.controller, arena)}>{_td(place)}{_named(name)}{''.join(map(_td, numbers))}</tr>")
    top = "".join(_th(head, text_column=head == "controller") for head in heads)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _overall(arena: Arena, standings: Sequence[Standing]) -> str:
    points = [
        _point(standing.controller, standing.share, standing.delay_ms, standing.on_front, number(standing.power), arena)
        for standing in standings
        if standing.share is not None and standing.delay_ms is not None
    ]
    if not points:
        return '<p class="note">No controller delivered something in every cell.</p>'
    faint = []
    if len(arena.seeds) > 1:
        shown = {point.controller for point in points}
        dead = set(deserted(arena.cells))
        for seed in arena.seeds:
            for name in shown:
                cells = [
                    cell
                    for cell in arena.cells
                    if cell.controller == name and cell.seed == seed and (cell.link, seed) not in dead
                ]
                delays = [cell.delay_ms for cell in cells if cell.delay_ms is not None]
                if delays and len(delays) == len(cells):
                    faint.append((name, geometric_mean([cell.share for cell in cells]), geometric_mean(delays)))
    text = "Geometric means over all traces: large marks over all seeds"
    text += ", small ones with each seed by itself." if faint else "."
    text += " Up and right is better; the broken line is the front. Marks without a name tell it when pointed at."
    return f'{scatter(points, sorted(faint), 880, 560)}<p class="note">{text}</p>'


def _heat(arena: Arena, standings: Sequence[Standing]) -> str:
    ranked = [standing for standing in standings if standing.links]
    if not ranked or ranked[0].relative is None:
        return '<p class="note">There is no reference to compare with.</p>'
    heads = "".join(f'<th scope="col" class="number"><span>{escaped(link.name)}</span></th>' for link in arena.links)
    rows = []
    for standing in ranked:
        cells = _td(number(standing.relative)) + "".join(_tinted(link.relative) for link in standing.links)
        rows.append(f"<tr{_reference(standing.controller, arena)}>{_named(standing.controller)}{cells}</tr>")
    top = f"<tr>{_th('controller', text_column=True)}{_th('all traces')}{heads}</tr>"
    text = f"Power over that of {arena.reference} on the same trace, mean over the seeds. Blue is ahead of it, orange behind."
    return (
        f'<div class="wide"><table class="heat"><thead>{top}</thead><tbody>{"".join(rows)}</tbody></table></div>'
        f'<p class="note">{escaped(text)}</p>'
    )


def _pictures(arena: Arena, standings: Sequence[Standing]) -> str:
    blocks = []
    for index, link in enumerate(arena.links):
        there = [(standing, standing.links[index]) for standing in standings if standing.links]
        points = [
            _point(standing.controller, on.share, on.delay_ms, on.on_front, number(on.power), arena)
            for standing, on in there
            if on.delay_ms is not None
        ]
        head = f"<h3>{escaped(link.name)} <small>{link.mean_bps * 1e-6:.2f} Mbit/s</small></h3>"
        blocks.append(f"<div>{head}{scatter(points, [], 440, 330) if points else ABSENT}</div>")
    return f'<div class="pictures">{"".join(blocks)}</div>'


def _tables(arena: Arena, standings: Sequence[Standing]) -> str:
    heads = ["controller", "power", "over seeds", "throughput Mbit/s", "share of capacity %", "signal p95 ms", "on front"]
    top = "".join(_th(head, text_column=head == "controller") for head in heads)
    blocks = []
    for index, line in enumerate(links_text(arena)):
        there = [(standing.controller, standing.links[index]) for standing in standings if standing.links]
        there.sort(key=lambda pair: -pair[1].power)
        rows = "".join(f"<tr{_reference(name, arena)}>{_named(name)}{_on_link(on)}</tr>" for name, on in there)
        table = f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
        blocks.append(f"<details><summary>{escaped(line)}</summary>{table}</details>")
    return "".join(blocks)


def _on_link(on: OnLink) -> str:
    cells = [
        number(on.power),
        between(on.power_least, on.power_most),
        f"{on.throughput_bps * 1e-6:.3f}",
        f"{100 * on.share:.1f}",
        ABSENT if on.delay_ms is None else f"{on.delay_ms:.0f}",
        "yes" if on.on_front else "",
    ]
    return "".join(map(_td, cells))


def _again(arena: Arena, folder: Path) -> str:
    first = f"{arena.links[0].name}.seed-{arena.seeds[0]}.toml"
    one = shlex.join(["paceline", "run", str(folder / "scenarios" / first), "--controller", arena.reference])
    traces = "".join(
        f"<dt>{escaped(link.name)}</dt><dd>SHA-256 {link.data_sha256}"
        + (f"; ACKs over {escaped(link.acks.name)}, {link.acks_sha256}" if link.acks is not None else "; ACKs without limit")
        + f"; seeds begin at {', '.join(f'{link.start_ms(seed) / 1e3:g}' for seed in arena.seeds)} s</dd>"
        for link in arena.links
    )
    return (
        f"<pre>{escaped(arena.command)}</pre>"
        '<p class="note">One cell of it, with a record and its time series, is the scenario of its trace and seed:</p>'
        f"<pre>{escaped(one)}</pre><h3>Traces</h3><dl>{traces}</dl>"
        f"<h3>Scenario</h3><pre>{escaped(_scenario(arena, folder))}</pre>"
    )


def _scenario(arena: Arena, folder: Path) -> str:
    path = folder / "scenarios" / f"{arena.links[0].name}.seed-{arena.seeds[0]}.toml"
    return path.read_text(encoding="utf-8").strip()


def _list(items: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escaped(name)}</dt><dd>{text}</dd>' for name, text in items)}</dl>"


def _point(controller: str, share: float, delay_ms: float, on_front: bool, power: str, arena: Arena) -> Point:
    title = f"{controller}: {100 * share:.1f} % at {delay_ms:.0f} ms, power {power}"
    return Point(controller, share, delay_ms, on_front, on_front or controller == arena.reference, title)


def _tinted(ratio: float | None) -> str:
    if ratio is None:
        return _td(ABSENT)
    size = math.inf if ratio == 0 else max(ratio, 1 / ratio)
    level = sum(size >= bound for bound in _TINTS)
    kind = f" {'ahead' if ratio > 1 else 'behind'}{level}" if level else ""
    return f'<td class="number{kind}">{number(ratio)}</td>'


def _reference(controller: str, arena: Arena) -> str:
    return ' class="reference"' if controller == arena.reference else ""


def _named(controller: str) -> str:
    return f'<td class="text">{swatch(controller)}{escaped(controller)}</td>'


def _td(text: str) -> str:
    return f'<td class="number">{escaped(text)}</td>'


def _th(text: str, *, text_column: bool = False) -> str:
    return f'<th scope="col" class="{"text" if text_column else "number"}">{escaped(text)}</th>'
