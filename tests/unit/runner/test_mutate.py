"""What scripts/mutate chooses, tries and counts; the mutants themselves are mutmut's."""

import importlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutmut.mutation.file_mutation import mutate_file_contents

from tests.runner.mutants import Mutated, function_of, guards, in_scope, sample
from tests.runner.mutate import ARGUED, Measured, main
from tests.runner.score import Row, read_arguments, rows, table
from tests.runner.surroundings import ROOT
from tests.runner.warm import Reach, Result

FILES = [
    Mutated(f"protocol/{name}.py", "", tuple(f"{name}.x_check__mutmut_{number}" for number in range(count)))
    for name, count in (("large", 60), ("middle", 30), ("small", 10))
]


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    assert sample(FILES, 20, "a") == sample(FILES[::-1], 20, "a")
    assert sample(FILES, 20, "a") != sample(FILES, 20, "b")
    assert sample(FILES, 1000, "a") == sorted(name for one in FILES for name in one.names)


@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_every_file_has_its_share_of_a_sample(seed: str) -> None:
    chosen = sample(FILES, 25, seed)
    assert len(set(chosen)) == 25
    counts = Counter(name.partition(".")[0] for name in chosen)
    assert all(
        abs(counts[name] - share) < 1 for name, share in (("large", 15), ("middle", 7.5), ("small", 2.5))
    )


def test_no_mutant_is_beyond_every_seed() -> None:
    assert {name for seed in range(200) for name in sample(FILES, 10, str(seed))} == {
        name for one in FILES for name in one.names
    }


def test_a_change_is_shown_by_the_lines_that_it_took_away_and_put_in() -> None:
    source = (
        "class Rule:\n    def check(self, value):\n        limit = self.limit\n        return value < limit\n"
    )
    made = mutate_file_contents("protocol/rule.py", source)
    mutated = Mutated(
        "protocol/rule.py", made.code, tuple(f"protocol.rule.{name}" for name in made.mutant_names)
    )
    shown = {mutated.change(name) for name in mutated.names}
    assert "-     return value < limit\n+     return value <= limit" in shown
    assert "-     limit = self.limit\n+     limit = None" in shown
    assert function_of(mutated.names[0]) == "protocol.rule.Rule.check"


def test_the_rules_are_in_scope_and_nothing_else() -> None:
    everything = in_scope([])
    assert "protocol/agreement/plan.py" in everything
    assert "chaincode/execution_record/result_rules.py" in everything
    assert not [name for name in everything if name.startswith(("tests/", "chaincode/shim/", "learning/"))]
    assert in_scope(["executor/launch"]) == [
        name for name in everything if name.startswith("executor/launch/")
    ]
    assert all((ROOT / path).is_dir() for path in guards(everything) if not path.startswith("-"))


@pytest.mark.parametrize(("noticed", "unnoticed", "share"), [(0, 0, 1.0), (9, 1, 0.9), (0, 1, 0.0)])
def test_argued_mutants_do_not_count(noticed: int, unnoticed: int, share: float) -> None:
    outcomes = {"killed": noticed, "survived": unnoticed, "argued": 50}
    row = Row("all", 1000, Counter(outcomes))
    assert row.score == share
    measured = Measured([row], [(Result("chaincode.x.x_check_slot__mutmut_3", "survived"), "- a\n+ b")])
    assert f"{noticed} noticed, {unnoticed} not, 50 argued" in measured.lines()[-1]
    assert measured.lines()[0].startswith("chaincode.x.check_slot: survived")


def test_the_interval_is_as_wide_as_the_sample_is_small() -> None:
    # Wilson's interval of 90 in 100, as tables of it have it.
    assert [round(end, 4) for end in Row("all", 5000, Counter(killed=90, survived=10)).interval] == [
        0.8256,
        0.9448,
    ]
    assert [round(end, 4) for end in Row("all", 5000, Counter(killed=9, survived=1)).interval] == [
        0.5958,
        0.9821,
    ]
    assert Row("all", 10).interval == (0.0, 1.0)


def test_a_package_has_a_row_and_what_times_out_was_noticed() -> None:
    found = rows(
        [("protocol", 600), ("chaincode/model", 400)],
        [("protocol", "killed"), ("protocol", "timeout"), ("chaincode/model", "no tests")],
    )
    assert [(row.name, row.noticed, row.unnoticed) for row in found] == [
        ("protocol", 2, 0),
        ("chaincode/model", 0, 1),
        ("all", 2, 1),
    ]
    assert table(found).splitlines()[2].startswith("| protocol | 600 | 2 | 1 | 1 | 0 | 0 | 100.0 % |")


def test_a_broken_rule_is_never_argued_away() -> None:
    broken = [
        "-    if task.is_expired(ctx.time):\n+    if not task.is_expired(ctx.time):",
        '-        raise StateError("RESULT_SLOT", f"{place}")\n+        raise StateError(None, f"{place}")',
        "-    if a and b:\n+    if a or b:",
        '-     if kind == "ring":\n+     if kind == "XXringXX":',
        '-     return sign(key, b"attestree task v1")\n+     return sign(key, b"ATTESTREE TASK V1")',
        '-     raise StateError("KEY_USED", "by a")\n+     raise StateError("key_used", "by a")',
        '-     return {"a b": x}\n+     return {"a c": x}',
    ]
    for argument in read_arguments(ARGUED):
        assert argument.reason
        assert not [change for change in broken if argument.change.search(change)]


@pytest.mark.parametrize("words", ["XXused beforeXX", "USED BEFORE"])
def test_the_words_of_a_cause_are_for_people(words: str) -> None:
    change = (
        f'-     raise StateError("KEY_USED", "used before")\n+     raise StateError("KEY_USED", "{words}")'
    )
    assert [argument for argument in read_arguments(ARGUED) if argument.holds("anywhere", change)]


def test_an_argument_is_of_a_function_that_is_still_there() -> None:
    for argument in read_arguments(ARGUED):
        module, _, function = argument.where.rpartition(".")
        if module[module.rfind(".") + 1 :][:1].isupper():
            module, _, owner = module.rpartition(".")
            assert hasattr(getattr(importlib.import_module(module), owner), function), argument.where
        elif argument.where:
            assert hasattr(importlib.import_module(module), function), argument.where


def test_a_change_outside_the_rules_makes_no_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--changed", "HEAD", "docs"]) == 0
    assert "0 noticed, 0 not" in capsys.readouterr().out


RULES = """
def limit(value):
    return value < 10

def unguarded(value):
    return value + 1

def unreached(value):
    return value + 1

def made_at_import():
    return 5

FIVE = made_at_import()
"""
TESTS = """
import os
from functools import cache, lru_cache
import pytest
from rules import FIVE, limit, unguarded

@pytest.fixture(scope="module")
def shared():
    return limit(10)

def test_first(shared):
    assert not shared

def test_second(shared):
    assert unguarded(1)

def test_third():
    os.environ.pop("MUTANT_UNDER_TEST")
    assert FIVE

@lru_cache(maxsize=4)
def below(value):
    return limit(value)

@cache
def prepared():
    return below(9)

def test_fourth():
    assert prepared()

def test_fifth():
    assert prepared()

def test_sixth():
    assert below.cache_info().currsize
"""


def test_a_mutant_is_tried_on_the_tests_that_reach_it_and_each_end_is_told(tmp_path: Path) -> None:
    made = mutate_file_contents("rules.py", RULES)
    (tmp_path / "rules.py").write_text(made.code)
    (tmp_path / "test_rules.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.mutmut]\nsource_paths = ["."]\n')
    mutants = [f"rules.{name}" for name in made.mutant_names]
    plan, results = tmp_path / "plan.json", tmp_path / "results"
    reach, keys = tmp_path / "reach.json", {"test_rules.py": "as it is now"}
    asked = {"mutants": mutants, "tests": ["test_rules.py"], "jobs": 2, "reach": str(reach), "keys": keys}
    plan.write_text(json.dumps(asked))
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "tests.runner.warm", plan, results]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, check=False, timeout=150
    )
    assert ended.returncode == 0, ended.stdout.decode()
    found = [Result(**json.loads(line)) for line in results.read_text().splitlines()]
    assert sorted(result.mutant for result in found) == sorted(mutants)
    ends: dict[str, list[tuple[str, str]]] = {
        function: [] for function in ("limit", "unguarded", "unreached", "made_at_import")
    }
    for result in found:
        ends[function_of(result.mutant).removeprefix("rules.")].append((result.status, result.by))
    assert set(ends["limit"]) == {("killed", "test_rules.py::test_first")}
    assert ("survived", "") in ends["unguarded"]
    assert set(ends["unreached"]) == {("no tests", "")}
    assert set(ends["made_at_import"]) == {("at import", "")}
    known = Reach(reach, keys).read()
    callers = {name.partition("::")[2] for name, one in known.items() if "rules.x_limit" in one.functions}
    assert callers == {"test_first", "test_second", "test_fourth", "test_fifth"}
    assert Reach(reach, {"test_rules.py": "as it is later"}).read() == {}
