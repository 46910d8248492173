"""The learner image in its sandbox: what it sends, and how it ends."""

from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.channel import unique
from support.memory.broker_double import HangUpError, serving
from support.memory.scene import SEED, Scene, refusing
from support.network import PROJECT

from executor.image.local import LocalImage
from executor.sandbox.container import Container, Mounts, Outcome
from executor.sandbox.profile import Limits, Profile
from protocol.broker.messages import Request, Verb
from protocol.digest import Digest


@pytest.fixture
def run(docker_client: DockerClient, learner_id: Digest, tmp_path: Path) -> Any:
    def once(scene: Scene, key: bytes = SEED) -> tuple[Outcome, list[Request]]:
        """Run a round in a container as an executor does."""
        scene.lay_out(tmp_path)
        has_state = scene.state is not None
        rows, state, socket = (tmp_path / name for name in ("rows", "state", "broker.sock"))
        for path in (rows, state) if has_state else (rows,):
            path.chmod(0o444)
        mounts = Mounts(rows, state if has_state else None, socket)
        profile = Profile.for_image(docker_client, LocalImage(learner_id, learner_id), Limits(), has_state)
        with serving(tmp_path, scene.answer) as broker:
            socket.chmod(0o666)
            labels = {"attestree.test": PROJECT}
            with Container.create(docker_client, profile, mounts, labels, unique("learner")) as container:
                container.start(bytearray(key))
                outcome = container.wait(120)
        return outcome, broker.asked

    return once


def test_a_round_in_the_container_is_the_round_outside_twice(run: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _, _, expected = Scene().run(outside)
    for _ in range(2):
        outcome, asked = run(Scene())
        assert outcome.exit_code == 0, outcome.log_tail
        assert asked == expected
        assert "SHARE: 3 estimators" in outcome.log_tail


def test_the_first_round_needs_no_state(run: Any) -> None:
    scene = Scene(state=None)
    outcome, asked = run(scene)
    assert outcome.exit_code == 0, outcome.log_tail
    assert asked[-1].verb is Verb.COMPLETE


def hang_up() -> bytes:
    raise HangUpError


@pytest.mark.parametrize(
    ("scene", "key", "exit_code"),
    [
        (Scene(opening={"parameter_hash": str(Digest.of(b""))}), SEED, 64),
        (Scene(rows=b"\x80pickle"), SEED, 65),
        (Scene(opening={"state": str(Digest.of(b""))}), SEED, 66),
        (Scene(bundle=b"\x01\x00\x00"), SEED, 67),
        (Scene(answers={Verb.SHARE: refusing()}), SEED, 68),
        (Scene(answers={Verb.SLOTS: hang_up}), SEED, 68),
        (Scene(), bytes(32), 69),
    ],
    ids=["task", "rows", "state", "trees", "refused", "hung-up", "key"],
)
def test_each_outcome_has_its_exit_code(run: Any, scene: Scene, key: bytes, exit_code: int) -> None:
    outcome, _ = run(scene, key)
    assert outcome.exit_code == exit_code, outcome.log_tail
    assert SEED.hex() not in outcome.log_tail
