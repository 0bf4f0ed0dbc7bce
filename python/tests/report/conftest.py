"""Three synthetic records: a loss-based run, a run of another controller with observed fields, and one with hostile names."""

import pytest
from synthetic import HOSTILE, write_record


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Directories of the three records."""
    root = tmp_path_factory.mktemp("records")
    failed = {"name": f"delay {HOSTILE}", "ok": False, "detail": f"asked 40 ms, got 43.1 ms {HOSTILE}"}
    return [
        write_record(root / "cubic", flows=[("flow 1", "cubic"), ("flow 2", "cubic")]),
        write_record(root / "mpc", flows=[("flow 1", "mpc"), ("flow 2", "mpc")], observed=True),
        write_record(
            root / "hostile", flows=[(HOSTILE, f"x{HOSTILE}")], title=f"<b>bold</b> {HOSTILE}", world="live", checks=[failed]
        ),
    ]
