"""The tables and figures of the papers, run again: ours beside theirs.

One module per paper, with its numbers and set-ups as data. A paper is listed with what runs today.
"""

import difflib
from collections.abc import Sequence

from paceline._native import InputError
from paceline.reproduce import latte, linux, mpc2019, mpc2020, mpc_goals
from paceline.reproduce.entry import Entry, Paper

#: Every paper, in the order of the years; then the goals of our own controller, and Linux.
PAPERS: tuple[Paper, ...] = (
    latte.PAPER,
    mpc2019.PAPER,
    mpc2020.PAPER,
    mpc_goals.paper(mpc_goals.MPC),
    linux.PAPER,
    linux.MPC_PAPER,
)


def entries() -> dict[str, Entry]:
    """Every entry by its ID, paper by paper."""
    return {entry.id: entry for paper in PAPERS for entry in paper.entries}


def select(ids: Sequence[str]) -> list[Entry]:
    """The entries that ``ids`` name: each one ID, or the beginning of several; none at all names every entry.

    Raises:
        InputError: an ID that is none, with those that are near.
    """
    known = entries()
    chosen: dict[str, Entry] = {}
    for wanted in ids or known:
        found = [wanted] if wanted in known else [name for name in known if wanted and name.startswith(wanted)]
        if not found:
            near = difflib.get_close_matches(wanted, known, n=3)
            hint = f"; near: {', '.join(near)}" if near else ""
            raise InputError(f"no table or figure is called `{wanted}`{hint} (paceline reproduce --list shows all)")
        chosen |= {name: known[name] for name in found}
    return list(chosen.values())
