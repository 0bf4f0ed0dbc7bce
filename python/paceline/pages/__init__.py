"""One page per built-in controller: idea, equations, parameters, profiles, and one flow of it on the standard link.

In: the registry and the runs of its controllers. Out: Markdown and SVG files, and the scenarios to get the runs again. The pages
of this version are docs/controllers; a test holds them to what :func:`texts` returns.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from paceline.controller import FAMILIES, ControllerSpec, ParamSpec, controllers, value_text
from paceline.quantity import DURATIONS_S, RATES_BPS, quantity_text
from paceline.record import Run
from paceline.running import run
from paceline.summary import ABSENT

_HERE = Path(__file__).parent
_STANDARD = _HERE / "standard-link.toml"
#: Links for families whose constants suit no wide-area path, or that need marks.
_LINKS = {"data-centre": _HERE / "data-centre-link.toml", "mark-based": _HERE / "marking-link.toml"}

_INDEX = """# Controllers

Every controller that is built in, by what it mainly goes by. A page has the idea and the equations, the parameters, what profiles
change, and one flow alone on a link. This folder is generated: `paceline controllers --pages docs/controllers`.

The numbers are those of that flow on the [standard link](standard-link.toml), 100 Mbit/s, 40 ms and a buffer of 1 BDP, where the
family does not name another: share of the link used, mean RTT and 99th percentile of the queueing delay once it has started, and
packets lost of those sent, the start included. The needs are what a host must provide beside window, losses and timeouts.
"""


@dataclass(frozen=True)
class Measured:
    """A controller, and one flow of it over the link of its family."""

    spec: ControllerSpec
    link: Path
    run: Run

    def numbers(self) -> dict[str, str]:
        """What became of the flow, as the pages say it. Delays and utilisation are those of the time after the warm-up."""
        (flow,) = self.run.result["flows"]
        (link,) = self.run.result["links"]

        def delay(ms: float | None) -> str:
            if ms is None:
                return ABSENT
            return f"{ms:.2f} ms" if self.run.result["duration_s"] >= 1 else f"{1000 * ms:.2f} µs"

        return {
            "utilisation": f"{100 * link['utilization']:.1f} %",
            "mean RTT": delay(flow["rtt_ms"]["mean"]),
            "p99 queueing delay": delay(flow["queueing_delay_ms"]["p99"]),
            "loss": f"{100 * flow['loss_fraction']:.3f} %",
        }

    def summary(self) -> str:
        """The numbers as one line."""
        return ", ".join(f"{name} {value}" for name, value in self.numbers().items())


def measure() -> list[Measured]:
    """Runs every built-in controller, one run per core at a time. In the order of the families."""
    order = list(FAMILIES)
    specs = sorted(controllers().values(), key=lambda spec: order.index(spec.family))

    def one(spec: ControllerSpec) -> Measured:
        link = _LINKS.get(spec.family, _STANDARD)
        return Measured(spec, link, run(link, spec.name))

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(one, specs))


def texts(measured: Sequence[Measured]) -> dict[str, str]:
    """Every file but the plots, by name."""
    found = {"README.md": _index(measured)}
    found |= {each.link.name: each.link.read_text(encoding="utf-8") for each in measured}
    found |= {f"{each.spec.name}.md": _page(each) for each in measured}
    return found


def write(directory: Path) -> list[Path]:
    """Writes every page with its plot, and the index, to ``directory``; returns the paths written.

    Raises:
        ImportError: Matplotlib is not installed.
        OSError: ``directory`` cannot be written.
    """
    from paceline.pages import plot

    measured = measure()
    files = texts(measured) | {f"{each.spec.name}.svg": plot.svg(each.run, each.summary()) for each in measured}
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in files]


def _index(measured: Sequence[Measured]) -> str:
    parts = [_INDEX]
    for family, meaning in FAMILIES.items():
        members = [each for each in measured if each.spec.family == family]
        if not members:
            continue
        link = members[0].link
        on = "" if link == _STANDARD else f" On the [{link.stem.replace('-link', ' link')}]({link.name})."
        parts.append(f"## {_title(family)}\n\n{_sentence(meaning)}{on}\n")
        rows = [
            (f"[{each.spec.name}]({each.spec.name}.md)", each.spec.title, _needs(each.spec), *each.numbers().values())
            for each in members
        ]
        parts.append(_table(["name", "title", "needs", *members[0].numbers()], rows, right=4))
    return "\n".join(parts)


def _page(each: Measured) -> str:
    spec = each.spec
    scenario = tomllib.loads(each.link.read_text(encoding="utf-8"))
    parts = [
        f"# {spec.title}\n",
        f"`{spec.name}`, [{spec.family}](README.md#{spec.family}): {FAMILIES[spec.family]}.\n",
        f"Source: {_text(spec.source)}.\n",
        f"A host must provide {', '.join(spec.needs) or 'nothing'} beside window, losses and timeouts.\n",
        f"## Idea and equations\n\n{spec.about.strip()}\n",
        f"## One flow\n\n![Rate, RTT and window over time]({spec.name}.svg)\n",
        f"{each.run.result['scenario']}. From {scenario['warmup']} on; losses over all {scenario['duration']}:\n",
        _table(list(each.numbers()), [list(each.numbers().values())], right=4),
        f"Again, in the folder of this page with its [scenario]({each.link.name}):\n",
        f"```sh\npaceline run {each.link.name} --controller {spec.name}\n```\n",
    ]
    if spec.params:
        rows = [(f"`{p.name}`", _unit(p), _value(p, p.default), _range(p), p.doc) for p in spec.params]
        parts.append("## Parameters\n\n" + _table(["name", "unit", "default", "range", "meaning"], rows))
    if spec.profiles:
        parts.append(f"## Profiles\n\n{_profiles(spec)}")
    if spec.fields:
        columns = [(f"`{f.name}`", f.unit, f.doc) for f in spec.fields]
        parts.append("## In the record\n\nColumns of `series.parquet`.\n\n" + _table(["name", "unit", "meaning"], columns))
    return "\n".join(parts)


def _profiles(spec: ControllerSpec) -> str:
    """Where each profile is from, and the parameters that any of them changes."""
    lines = [f"* `{spec.name}:{profile.name}`: {_text(profile.source)}" for profile in spec.profiles]
    rows = [
        [
            f"`{param.name}`",
            _unit(param),
            _value(param, param.default),
            *(
                _value(param, p.values[param.name]) if p.values.get(param.name, param.default) != param.default else ""
                for p in spec.profiles
            ),
        ]
        for param in spec.params
        if any(profile.values.get(param.name, param.default) != param.default for profile in spec.profiles)
    ]
    return "\n".join([*lines, "", _table(["name", "unit", "default", *(p.name for p in spec.profiles)], rows)])


def _value(param: ParamSpec, value: float | int | bool | str) -> str:
    """The value as a scenario writes it: durations and rates with their unit."""
    units = {"duration": DURATIONS_S, "rate": RATES_BPS}.get(param.kind)
    return value_text(value) if units is None or not isinstance(value, int | float) else quantity_text(value, units)


def _unit(param: ParamSpec) -> str:
    """The unit of numbers that are written without one."""
    return param.unit if param.kind in ("number", "integer") else ""


def _range(param: ParamSpec) -> str:
    if param.min is None or param.max is None:
        return param.allowed
    return f"{_value(param, param.min)} to {_value(param, param.max)}"


def _needs(spec: ControllerSpec) -> str:
    return ", ".join(spec.needs) or ABSENT


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> str:
    """A table; its last ``right`` columns are numbers."""
    marks = ["---"] * (len(headings) - right) + ["---:"] * right
    lines = [headings, marks, *([_text(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _text(text: str) -> str:
    """``text`` in a paragraph or a cell, where some letters would be markup."""
    return re.sub(r"([*|<])", r"\\\1", text)


def _title(family: str) -> str:
    return family[0].upper() + family[1:]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
