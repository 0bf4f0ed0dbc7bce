"""What a test with a real emulated link needs of the machine."""

import os
import sys
from collections.abc import Callable
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., object])


def _missing() -> str | None:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "emulated links need root"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


def on_the_network(missing: str | None) -> Callable[[Test], Test]:
    """Marks a test that uses this machine's network, or looks for what is left there; skipped if something is `missing`."""
    skip = pytest.mark.skipif(missing is not None, reason=str(missing))
    return lambda test: pytest.mark.network(skip(test))


real = on_the_network(_missing())
