"""Scenarios built in code, and the forms a scenario may take."""

import tomllib
from pathlib import Path

import pytest

import paceline as pl
from paceline.running import Source, override_list


class Mine(pl.Controller):
    def on_ack(self, ack: pl.Ack) -> None: ...


def test_a_built_scenario_is_the_file_one_would_write() -> None:
    scenario = pl.Scenario(
        title="two",
        duration="30 s",
        warmup="5 s",
        seed=3,
        link=pl.Link(rate="40 Gbit/s", delay="12.5 ms", buffer="0.25 BDP", queue={"kind": "codel", "target": "5 ms"}),
        flows=[
            pl.Flow(controller={"name": "mpc", "target": 0.5}, count=2, cap="20 Gbit/s"),
            pl.Flow(controller=Mine, start="1 s"),
        ],
        extra={"sample": "10 ms"},
    )
    assert tomllib.loads(scenario.to_toml()) == {
        "title": "two",
        "duration": "30 s",
        "warmup": "5 s",
        "seed": 3,
        "sample": "10 ms",
        "link": {"rate": "40 Gbit/s", "delay": "12.5 ms", "buffer": "0.25 BDP", "queue": {"kind": "codel", "target": "5 ms"}},
        "flows": [
            {"controller": {"name": "mpc", "target": 0.5}, "count": 2, "cap": "20 Gbit/s"},
            {"controller": "Mine", "start": "1 s"},
        ],
    }
    assert scenario.python_controllers() == {"Mine": Mine}


def test_two_classes_of_one_name_are_refused() -> None:
    other = type("Mine", (Mine,), {})
    scenario = pl.Scenario(link=pl.Link(rate="1 Mbit/s"), flows=[pl.Flow(controller=Mine), pl.Flow(controller=other)])
    with pytest.raises(pl.InputError, match="^two controller classes are called Mine; rename one$"):
        Source.of(scenario)


def test_a_path_a_text_and_a_dict_are_told_apart(tmp_path: Path) -> None:
    text = '[link]\nrate = "1 Mbit/s"\n'
    file = tmp_path / "s.toml"
    file.write_text(text)
    assert Source.of(file) == Source(text, str(file), {})
    assert Source.of(str(file)) == Source(text, str(file), {})
    assert Source.of(text) == Source(text, None, {})
    assert tomllib.loads(Source.of({"link": {"rate": "1 Mbit/s"}}).text) == tomllib.loads(text)


def test_what_cannot_be_read_says_which_file(tmp_path: Path) -> None:
    with pytest.raises(pl.InputError, match=r"nowhere\.toml: No such file or directory$"):
        Source.of(tmp_path / "nowhere.toml")
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(pl.InputError, match=r"b\.toml: not UTF-8 text"):
        Source.of(binary)
    with pytest.raises(pl.InputError, match="^the scenario cannot be written as TOML"):
        Source.of({"link": {"rate": None}})


def test_overrides_of_a_dict_are_toml_values() -> None:
    overrides = {
        "link.rate": "10 Mbit/s",
        "seed": 5,
        "link.loss": {"kind": "bernoulli", "p": 0.1},
        "flows.0.count": 2,
        "title": 'a "b"',
    }
    as_text = override_list(overrides)
    assert as_text[:2] == ['link.rate="10 Mbit/s"', "seed=5"]
    for item, value in zip(as_text, overrides.values(), strict=True):
        assert tomllib.loads(f"v = {item.split('=', 1)[1]}")["v"] == value
    assert override_list(["link.rate=1 Mbit/s"]) == ["link.rate=1 Mbit/s"]
    with pytest.raises(pl.InputError, match='^overrides is one string, "a=1"; expected a dict, or a list of "key=value"$'):
        override_list("a=1")


def test_a_seed_outside_64_bits_is_refused() -> None:
    with pytest.raises(pl.InputError, match=r"^seed is -1; allowed: whole numbers 0 to 2\^64 - 1$"):
        pl.run("[link]\n", seed=-1)


def test_a_part_of_the_wrong_type_is_named() -> None:
    link = pl.Link(rate="1 Mbit/s", rtt="10 ms")
    with pytest.raises(TypeError, match=r"flows\[1\] is 'cubic'; expected a paceline.Flow"):
        pl.Scenario(link=link, flows=[pl.Flow("reno"), "cubic"]).to_dict()  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"link is \{\}; expected a paceline.Link"):
        pl.Scenario(link={}, flows=[]).to_dict()  # type: ignore[arg-type]
