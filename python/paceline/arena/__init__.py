"""The arena: controllers against each other over all traces of a folder.

In: controllers, traces, seeds. Out: what came of every cell (a controller on a trace with a seed), the ranking, and one page.
``traces`` finds the links, ``setting`` makes scenarios of them, ``running`` carries the cells out and keeps what they gave,
``standing`` ranks, ``page`` and ``drawing`` show. What the seeds mean and how the ranks are made: docs/arena.md.
"""
