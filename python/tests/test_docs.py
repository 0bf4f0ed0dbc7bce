"""What the documents show works: code blocks are run, scenarios checked, commands parsed, links followed.

A fenced block says what is done with it after its language:

* ``python run``: executed, in the order of the document and in one namespace; files go to an empty directory,
* ``python file=NAME``: written to that directory and executed,
* ``toml``: a whole scenario, which ``paceline.check`` must accept; ``toml example`` names the example's controller and is
  checked with another one; ``toml file=NAME`` is also written to that directory,
* ``text output=COMMAND``: what the command prints there, but for the line that tells the CPU time,
* ``sh``: lines that begin with ``paceline`` must parse,
* ``rust file=PATH`` and the like: part of the walk-through, a file of the workspace; with ``after=TEXT`` a line of it, put
  behind ``TEXT``. ``kernel`` marks the files of the variant in C.

The walk-through is applied to a copy of `crates/cc` and built and tested there.
"""

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import paceline as pl
from handmade import Command
from paceline.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: The controller that CONTRIBUTING.md adds.
EXAMPLE = "threshold"


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    document: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def mark(self, key: str) -> str | None:
        return next((mark.removeprefix(f"{key}=") for mark in self.marks if mark.startswith(f"{key}=")), None)

    @property
    def place(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(document: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.startswith("```"):
            lines.append(line)
        elif opened is None:
            opened, lines = (number, line[3:]), []
        else:
            language, *marks = shlex.split(opened[1]) or [""]
            found.append(Block(document, opened[0], language, tuple(marks), "\n".join(lines) + "\n"))
            opened = None
    assert opened is None, f"{document.name}:{opened}: this block is not closed"
    return found


BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]


def named(chosen: list[Any]) -> dict[str, Any]:
    """Keywords of ``pytest.mark.parametrize`` that name each case by its place."""
    return {"argvalues": chosen, "ids": [item.place if isinstance(item, Block) else item.name for item in chosen]}


# ------------------------------------------------------------------------------------------------------- Python and TOML


@pytest.mark.parametrize("document", **named([d for d in DOCUMENTS if any(b.language == "python" for b in blocks(d))]))
def test_python_blocks_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__documentation__"}
    for block in blocks(document):
        if block.language != "python":
            continue
        if name := block.mark("file"):
            Path(name).write_text(block.text)
        elif "run" not in block.marks:
            continue
        exec(compile("\n" * block.line + block.text, str(document), "exec"), namespace)  # our own text


@pytest.mark.parametrize("block", **named([b for b in BLOCKS if b.mark("output")]))
def test_output_is_as_shown(block: Block, tmp_path: Path, paceline: Command) -> None:
    for other in blocks(block.document):
        if (name := other.mark("file")) and "/" not in name:
            (tmp_path / name).write_text(other.text)
    done = paceline(*shlex.split(str(block.mark("output")))[1:])
    assert done.returncode == 0, done.stderr
    shown = [line.rstrip() for line in done.stdout.splitlines() if not line.endswith("times real time")]
    assert block.text.splitlines() == shown


def test_every_python_block_says_what_it_is() -> None:
    for block in BLOCKS:
        assert block.language != "python" or block.marks, f"{block.place}: neither `run` nor `file=`"


@pytest.mark.parametrize("block", **named([b for b in BLOCKS if b.language == "toml"]))
def test_scenarios_are_accepted(block: Block) -> None:
    text = block.text
    if "example" in block.marks:
        assert f'"{EXAMPLE}"' in text
        text = text.replace(f'"{EXAMPLE}"', '"window"')
    resolved = pl.check(text)
    assert resolved["flows"]


# ------------------------------------------------------------------------------------------------------ commands and links


def commands() -> list[tuple[str, str]]:
    lines = [(block.place, line) for block in BLOCKS if block.language == "sh" for line in block.text.splitlines()]
    return [(place, line) for place, line in lines if line.startswith("paceline ")]


def test_commands_parse() -> None:
    assert commands()
    for place, line in commands():
        arguments = shlex.split(line, comments=True)[1:]
        command: Any = typer.main.get_command(app)
        name = "paceline"
        while hasattr(command, "commands"):
            name = arguments.pop(0)
            assert name in command.commands, f"{place}: no command `{name}`"
            command = command.commands[name]
        try:
            command.make_context(name, arguments)
        except Exception as error:
            pytest.fail(f"{place}: {line}: {error}")


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        for target in re.findall(r"`make ([a-z-]+)", document.read_text()):
            assert target in targets, f"{document.name}: make {target}"


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if not re.match(r"[a-z]+:", target):
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_files_named_exist() -> None:
    """Paths in backquotes, from the root of the repository; those of the walk-through do not exist yet."""
    for document in DOCUMENTS:
        for path in re.findall(r"`((?:crates|bpf|qdisc|python|scenarios|docs|benches|scripts)/[\w./-]*)`", document.read_text()):
            assert EXAMPLE in path or (ROOT / path).exists(), f"{document.name} names {path}"


def test_the_front_pages_stay_short() -> None:
    for name in ("README.md", "ARCHITECTURE.md"):
        assert len((ROOT / name).read_text().splitlines()) <= 150, name


# -------------------------------------------------------------------------------------------------------- the walk-through


def walk_through(*, kernel: bool) -> list[Block]:
    """The files of the walk-through; in the variant in C those marked ``kernel`` take the place of the others."""
    steps = [
        block for block in blocks(ROOT / "CONTRIBUTING.md") if block.mark("file") and block.language in ("rust", "c", "markdown")
    ]
    return [step for step in steps if "kernel" not in step.marks] + [step for step in steps if kernel and "kernel" in step.marks]


def copy_of_cc(steps: list[Block]) -> tuple[Path, dict[str, str]]:
    """A workspace with `crates/cc`, the C beside it and ``steps`` applied; the environment to build it in.

    It lies in the target folder, so that crates it depends on are built once.
    """
    base = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "docs"
    workspace = base / "workspace"
    shutil.rmtree(workspace, ignore_errors=True)
    (workspace / "crates").mkdir(parents=True)
    for folder in ("crates/cc", "bpf", "qdisc"):
        # New modification times: Cargo then builds what this copy holds.
        shutil.copytree(ROOT / folder, workspace / folder, copy_function=shutil.copyfile)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, workspace / name)
    for step in steps:
        path = workspace / str(step.mark("file"))
        if after := step.mark("after"):
            text = path.read_text()
            assert text.count(after) == 1, f"{step.place}: `{after}` is not once in {path.name}"
            path.write_text(text.replace(after, f"{after}\n{step.text}"))
        else:
            path.write_text(step.text)
    return workspace, {**os.environ, "CARGO_TARGET_DIR": str(base / "build"), "CARGO_TERM_COLOR": "never"}


def cargo_test(workspace: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    return subprocess.run(
        ["cargo", "test", "--offline", "-p", "paceline-cc", *arguments],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.parametrize("kernel", [False, True], ids=["rust", "c"])
def test_the_walk_through_adds_a_controller(kernel: bool) -> None:
    """All tests of the crate where there is C to build and to check; in Rust those that look at every controller."""
    steps = walk_through(kernel=kernel)
    assert len(steps) == (7 if kernel else 5), [step.place for step in steps]
    workspace, environment = copy_of_cc(steps)
    some = ("--lib", "--test", "registry", "--test", "properties", "--test", EXAMPLE)
    done = cargo_test(workspace, environment, *(() if kernel else some))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Running tests/{EXAMPLE}.rs" in done.stderr
    assert "warning: unused" not in done.stderr


def test_the_tests_of_the_registry_cover_it() -> None:
    """A mistake in the new table is found by the tests that were there before: the default out of its own range."""
    workspace, environment = copy_of_cc(walk_through(kernel=False))
    source = workspace / f"crates/cc/src/algorithms/{EXAMPLE}.rs"
    text = source.read_text()
    assert text.count("0.075,") == 1
    source.write_text(text.replace("0.075,", "1e9,"))
    done = cargo_test(workspace, environment, "--test", "registry")
    assert done.returncode != 0
    assert f"{EXAMPLE}.threshold: default out of range" in done.stdout
