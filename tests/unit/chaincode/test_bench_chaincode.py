"""The benchmark of the shim: rounds are compared one by one, and what it compares with is pinned."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import _chaincode_load

    return _chaincode_load


def outcome(load, *rounds):
    """Rounds of (calls of the probe, of Go, of Node), each in one second."""
    names = ("probe", "bench-go", "bench-node")
    slices = tuple(
        load.Slice(name, number, done, 0, 1.0, 1000 / done)
        for number, each in enumerate(rounds)
        for name, done in zip(names, each, strict=True)
    )
    return load.Outcome(load.Scenario("evaluate", 1000, 60), slices, dict.fromkeys(names, 3.0))


def test_a_ratio_is_that_of_the_rounds_and_not_of_the_sums(load):
    """A round in which the machine was busy says as much as one in which it was idle."""
    made = outcome(load, (50, 100, 10), (500, 1000, 100), (5, 10, 1))
    assert made.rate_ratio("bench-go") == 0.5
    assert made.rate_ratio("bench-node") == 5
    assert made.time_ratio("bench-go") == 2
    assert made.rate("probe") == 50


def test_one_round_that_was_disturbed_does_not_count(load):
    made = outcome(load, (100, 100, 100), (1, 100, 100), (100, 100, 100))
    assert made.rate_ratio("bench-go") == 1


def test_processor_time_is_that_of_one_call(load):
    assert outcome(load, (100, 50, 10), (200, 100, 20)).processor_ms("probe") == 10


def test_scenarios_are_named_by_what_they_do(load):
    assert load.Scenario("submit", 100_000, 60).label == "submit 100 kB, 60 clients"
    assert load.Scenario("evaluate", 1000).label == "evaluate 1 kB, 1 client"
    assert load.Scenario("writes").label == "1,000 writes in one transaction"


def test_the_npm_lock_has_a_hash_for_every_package_and_names_no_registry():
    lock = json.loads((ROOT / "bench/peers/node/package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages["node_modules/fabric-shim"]["version"] == "2.5.8"
    for name, entry in packages.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, name


def test_every_go_module_of_the_comparison_has_its_hash():
    folder = ROOT / "bench/peers/go"
    needed = re.findall(r"^\t(\S+) (v\S+)", (folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    sums = (folder / "go.sum").read_text(encoding="utf-8")
    assert ("github.com/hyperledger/fabric-chaincode-go/v2", "v2.3.0") in needed
    for module, version in needed:
        assert f"{module} {version}" in sums, module
