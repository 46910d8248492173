"""What scripts/mutate counts and chooses; the mutants themselves are mutmut's."""

import pytest

from tests.runner.mutants import Mutant, in_scope, sample
from tests.runner.mutate import ARGUED, Score, main, read_arguments

SLOT = Mutant("chaincode.x_check_slot__mutmut_3", "chaincode/x.py", "survived")


def test_a_sample_is_the_same_every_time_whatever_the_order() -> None:
    names = [f"mutant {number}" for number in range(100)]
    assert sample(names, 7) == sample(names[::-1], 7)
    assert len(sample(names, 7)) == 7
    assert sample(names, 1000) == sorted(names)


def test_the_rules_are_in_scope_and_nothing_else() -> None:
    everything = in_scope([])
    assert "protocol/agreement/plan.py" in everything
    assert "chaincode/execution_record/result_rules.py" in everything
    assert not [name for name in everything if name.startswith(("tests/", "chaincode/shim/", "learning/"))]
    assert in_scope(["executor/launch"]) == [
        name for name in everything if name.startswith("executor/launch/")
    ]


@pytest.mark.parametrize(("noticed", "unnoticed", "share"), [(0, 0, 1.0), (9, 1, 0.9), (0, 1, 0.0)])
def test_argued_mutants_do_not_count(noticed: int, unnoticed: int, share: float) -> None:
    score = Score(noticed, 50, [(SLOT, "- a\n+ b")] * unnoticed)
    assert score.share == share
    assert f"{noticed} noticed, {unnoticed} not, 50 argued" in score.lines()[-1]


def test_a_broken_rule_is_never_argued_away() -> None:
    broken = [
        "-    if task.is_expired(ctx.time):\n+    if not task.is_expired(ctx.time):",
        '-        raise StateError("RESULT_SLOT", f"{place}")\n+        raise StateError(None, f"{place}")',
        "-    if a and b:\n+    if a or b:",
    ]
    for argument in read_arguments(ARGUED):
        assert argument.reason
        assert not [change for change in broken if argument.pattern.search(change)]


def test_a_change_outside_the_rules_makes_no_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--changed", "HEAD", "docs"]) == 0
    assert "0 noticed, 0 not" in capsys.readouterr().out
