"""Where the engine is looked for, and how its absence is told."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from support.answering_engine import answering

from executor import engine as module
from executor.engine import engine
from executor.errors import EngineError
from executor.exits import ENGINE_UNREACHABLE, exit_code


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, socket_folder: Path) -> None:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(socket_folder / "docker"))
    monkeypatch.setenv("HOME", str(socket_folder))


def test_docker_host_comes_first_and_an_engine_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, socket_folder: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_folder}/none.sock")
    with pytest.raises(EngineError) as caught:
        engine()
    assert caught.value.code == "ENGINE_UNREACHABLE"
    assert f"{socket_folder}/none.sock" in caught.value.cause
    assert "scripts/bootstrap" in caught.value.remedy
    assert exit_code(caught.value) == ENGINE_UNREACHABLE


@pytest.mark.parametrize("name", ["docker.sock", "podman/podman.sock"])
def test_a_rootless_engine_is_found_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, socket_folder: Path, name: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_folder))
    monkeypatch.setattr(module, "_SYSTEM", str(socket_folder / "system.sock"))
    (socket_folder / name).parent.mkdir(exist_ok=True)
    with answering(socket_folder / name, version={"ApiVersion": "1.44"}):
        assert engine().api.api_version == "1.44"
        with answering(socket_folder / "system.sock", version={"ApiVersion": "1.45"}):
            assert engine().api.api_version == "1.45"


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_context_of_the_docker_command_is_used(
    monkeypatch: pytest.MonkeyPatch, socket_folder: Path, by_variable: bool
) -> None:
    described = socket_folder / "docker/contexts/meta" / sha256(b"bank").hexdigest() / "meta.json"
    described.parent.mkdir(parents=True)
    endpoint = {"Host": f"unix://{socket_folder}/bank.sock", "SkipTLSVerify": False}
    described.write_text(json.dumps({"Name": "bank", "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    current = {} if by_variable else {"currentContext": "bank"}
    (socket_folder / "docker/config.json").write_text(json.dumps(current))
    if by_variable:
        monkeypatch.setenv("DOCKER_CONTEXT", "bank")
    with answering(socket_folder / "bank.sock", version={"ApiVersion": "1.46"}):
        assert engine().api.api_version == "1.46"


def test_a_context_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONTEXT", "nowhere")
    with pytest.raises(EngineError) as caught:
        engine()
    assert caught.value.code == "ENGINE_UNREACHABLE"
    assert "nowhere" in caught.value.cause


def test_an_engine_older_than_20_10_is_refused(monkeypatch: pytest.MonkeyPatch, socket_folder: Path) -> None:
    with answering(socket_folder / "old.sock", version={"ApiVersion": "1.40"}):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_folder}/old.sock")
        with pytest.raises(EngineError) as caught:
            engine()
    assert caught.value.code == "ENGINE_VERSION"


def test_podman_is_taken_by_the_api_it_speaks(monkeypatch: pytest.MonkeyPatch, socket_folder: Path) -> None:
    with answering(socket_folder / "podman.sock", version={"ApiVersion": "1.41", "Version": "4.3.1"}):
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_folder}/podman.sock")
        engine().close()
