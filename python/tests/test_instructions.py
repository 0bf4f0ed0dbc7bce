"""The comparison of instruction counts; the counting itself is part of ``make test``."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benches" / "instructions.py"


@pytest.fixture(scope="module")
def instructions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("instructions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for it.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def compared(instructions: ModuleType, before: dict[str, float], after: dict[str, float]) -> tuple[list[str], bool]:
    counts = [instructions.Counts("1.90.0", "x86_64-unknown-linux-gnu", cases) for cases in (before, after)]
    lines, good = instructions.compare(*counts)
    return lines, good


def test_a_rise_fails_and_names_the_case(instructions: ModuleType) -> None:
    lines, good = compared(instructions, {"fat": 1000.0, "thin": 500.0}, {"fat": 1031.0, "thin": 500.0})
    assert not good
    assert lines[0].startswith("fat: 1031.0 instructions per packet, baseline 1000.0 (+3.1%): more than 3% too many")
    assert lines[1] == "thin: 500.0 instructions per packet, baseline 500.0 (+0.0%)"


def test_three_percent_are_within_the_noise_of_a_build(instructions: ModuleType) -> None:
    assert compared(instructions, {"fat": 1000.0}, {"fat": 1029.9})[1]


def test_a_fall_asks_for_a_new_baseline_and_passes(instructions: ModuleType) -> None:
    lines, good = compared(instructions, {"fat": 1000.0}, {"fat": 960.0})
    assert good
    assert lines[0].endswith("better than the baseline, renew it: python benches/instructions.py bless")


def test_cases_that_only_one_side_has_fail(instructions: ModuleType) -> None:
    lines, good = compared(instructions, {"old": 1.0}, {"new": 1.0})
    assert not good
    assert [line.split(";")[0] for line in lines] == ["new: not in the baseline", "old: not among the runs"]


def test_another_compiler_or_processor_is_not_compared_with(instructions: ModuleType) -> None:
    baseline = instructions.Counts("1.90.0", "x86_64-unknown-linux-gnu", {})
    instructions.comparable(baseline, "1.90.0", "x86_64-unknown-linux-gnu")
    for here in (("1.91.0", "x86_64-unknown-linux-gnu"), ("1.90.0", "aarch64-unknown-linux-gnu")):
        with pytest.raises(instructions.NoCountError, match="the baseline was counted with Rust 1.90.0 for x86_64"):
            instructions.comparable(baseline, *here)


def test_the_baseline_reads_back(instructions: ModuleType) -> None:
    counts = instructions.Counts("1.90.0", "x86_64-unknown-linux-gnu", {"fat": 1234.5})
    assert instructions.read(counts.to_toml()) == counts
    assert len(instructions.read(instructions.BASELINE.read_text()).instructions_per_packet) >= 3
