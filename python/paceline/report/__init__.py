"""Reports of recorded runs: a self-contained HTML page and publication figures.

In: record directories as ``paceline run`` writes them. Out: files that need nothing else to be read, on any machine, offline.
The page draws with uPlot (vendored); the figures need Matplotlib, an optional extra.
"""

from paceline.report.figures import write_figures
from paceline.report.loading import RecordError
from paceline.report.page import write_html

__all__ = ["RecordError", "write_figures", "write_html"]
