"""down.sh removes everything, whatever the engine is in the middle of."""

import pytest
from support.scripted_engine import Engine


def test_container_that_its_restart_policy_brings_back_is_removed_too(engine: Engine) -> None:
    engine.put(containers="peer\norderer\n", networks="n1\n", restarting="")
    ran = engine.run("network/down.sh")
    assert ran.returncode == 0, ran.stderr
    assert "stopped 2 containers" in ran.stderr
    assert (engine.get("containers"), engine.get("networks")) == ("", "")
    calls = engine.get("calls").splitlines()
    assert calls.index("update --restart no peer orderer") < calls.index("stop --time 10 peer orderer")


def test_place_that_a_removed_container_has_left_in_the_network_is_given_up(engine: Engine) -> None:
    engine.put(networks="n1\n", endpoints="peer\n")
    assert engine.run("network/down.sh").returncode == 0
    assert "network disconnect --force n1 peer" in engine.get("calls")
    assert engine.get("networks") == ""


@pytest.mark.parametrize("flag", [[], ["--purge"]])
def test_volumes_go_with_a_purge_alone_and_a_second_time_is_no_error(engine: Engine, flag: list[str]) -> None:
    engine.put(containers="peer\n", networks="n1\n", volumes="ledger\n")
    for _ in range(2):
        assert engine.run("network/down.sh", *flag).returncode == 0
    assert engine.get("volumes") == ("" if flag else "ledger\n")
    # A ledger that stays is written to its end.
    assert ("stop --time 10 peer" in engine.get("calls")) is not bool(flag)
