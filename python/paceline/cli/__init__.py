"""The command ``paceline``.

Exit status: 0 done, 1 the run failed, 2 bad usage or input, 130 interrupted. Errors are one message on stderr. With ``--json``
stdout holds exactly one JSON object when the command succeeds and nothing when it does not.
"""

import contextlib
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType

from paceline._native import InputError, PacelineError


class Interrupted(BaseException):
    """Ctrl-C. Not `KeyboardInterrupt`, which the command-line library would turn into exit status 1."""


def main() -> None:
    """Entry point of the console script."""
    # A shell starts background jobs with SIGINT ignored; leave that so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        _open_streams()
        _check_arguments()
        # Here, not above: Ctrl-C while the commands are being loaded is an interrupt like any other.
        from paceline.cli.app import app

        try:
            app(prog_name="paceline")
        except SystemExit as leaving:
            if isinstance(leaving.__context__, BrokenPipeError):
                # The command-line library's answer to it, exit status 1, is not ours.
                raise leaving.__context__ from None
            # Here, not at exit: what stdout does not take is then an error like any other.
            sys.stdout.flush()
            raise
    except PacelineError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.__cause__ is not None:
            # A controller in Python raised: its author needs the line.
            traceback.print_exception(error.__cause__)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except Interrupted:
        print("interrupted", file=sys.stderr)
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        # Runs in other threads cannot be stopped; a plain exit would wait for them. They have left nothing half-done.
        os._exit(130)
    except BrokenPipeError:
        # The reader has seen enough (`paceline controllers | head`).
        _drop_stdout()
        sys.exit(0)
    except OSError as error:
        # Commands name the files that they cannot use; what comes here is most likely a full disk behind stdout.
        print(f"error: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        _drop_stdout()
        sys.exit(1)


def _open_streams() -> None:
    """A stream that the caller closed (``>&-``) goes nowhere. Left closed, a file of ours would take its number and its text."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115


def _check_arguments() -> None:
    """Names and texts go into records and files of TOML, which hold UTF-8 alone."""
    for argument in sys.argv[1:]:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InputError(f"argument {argument!a}: not UTF-8 text; rename the file, or set a UTF-8 locale") from None


def _drop_stdout() -> None:
    """Points stdout elsewhere: what could not be written would fail again in the flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise Interrupted
