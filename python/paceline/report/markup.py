"""What every page of Paceline is made with: one file, no network, nothing to install, and no way for data to become markup.

In: text, style sheets, scripts. Out: escaped text, a content security policy, a file that is never half a page.
"""

import base64
import hashlib
import html
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).parent


def asset(name: str) -> str:
    """A file of this package as text."""
    return (_HERE / name).read_text(encoding="utf-8").strip()


def escaped(value: object) -> str:
    """``value`` as text of an element or of an attribute."""
    return html.escape(str(value), quote=True)


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A content security policy that lets the browser use these style sheets and scripts, and load nothing."""

    def hashes(sources: Sequence[str]) -> str:
        digests = (base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in sources)
        return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"

    return f"default-src 'none'; img-src data:; style-src {hashes(styles)}; script-src {hashes(scripts)}"


def write(page: str, out: Path) -> None:
    """Writes ``page`` under a temporary name and renames it to ``out``, which is never half a page.

    Raises:
        OSError: ``out`` cannot be written; this is the file it names.
    """
    out = Path(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _replace(out, page)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from None


def _replace(out: Path, page: str) -> None:
    handle, partial = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(page)
        Path(partial).chmod(0o644)
        Path(partial).replace(out)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
