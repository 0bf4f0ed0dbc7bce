"""The command ``paceline``.

Exit status: 0 done, 1 the run failed, 2 bad usage or input, 130 interrupted. Errors are one message on stderr. With ``--json``
stdout holds exactly one JSON object when the command succeeds and nothing when it does not.
"""

import os
import signal
import sys
import traceback
from types import FrameType

from paceline._native import InputError, PacelineError
from paceline.cli.app import app


class Interrupted(BaseException):
    """Ctrl-C. Not `KeyboardInterrupt`, which the command-line library would turn into exit status 1."""


def main() -> None:
    """Entry point of the console script."""
    # A shell starts background jobs with SIGINT ignored; leave that so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app(prog_name="paceline")
    except PacelineError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.__cause__ is not None:
            # A controller in Python raised: its author needs the line.
            traceback.print_exception(error.__cause__)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except Interrupted:
        print("interrupted", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        # Runs in other threads cannot be stopped; a plain exit would wait for them. They have left nothing half-done.
        os._exit(130)
    except BrokenPipeError:
        # The reader has seen enough (`paceline controllers | head`). Point stdout elsewhere, or the flush at exit fails too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise Interrupted
