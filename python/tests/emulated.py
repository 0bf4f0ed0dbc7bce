"""What a test with a real emulated link needs of the machine."""

import os
import sys

import pytest


def _missing() -> str | None:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "emulated links need root"
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"/dev/net/tun: {error.strerror}"
    return None


real = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))
