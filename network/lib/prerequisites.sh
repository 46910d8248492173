# shellcheck shell=bash
# What this machine needs before a network can start: the Python environment, the Docker engine and Compose. Each is left
# alone where it is there, and announced before it is installed or started.

prepare_machine() {
  python_environment
  docker_engine
  compose_plugin
}

# --- Python -------------------------------------------------------------------------------------------------------

# python_program: a Python new enough to make the environment with; python3 itself where it is.
python_program() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}
has_compiler() {
  local python
  python=$(python_program) && command -v cc && "$python" -c 'import pathlib, sysconfig, sys
sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())'
}
# The environment's own interpreter counts, not the one that the caller's PATH happens to find.
environment_is_current() { [ "$(cat "$ROOT/.venv/.locked" 2>/dev/null)" = "$(environment_key)" ]; }
environment_key() {
  (cd "$ROOT" && .venv/bin/python -VV 2>/dev/null && echo "$ROOT" &&
    cat requirements/dev.txt requirements/uv.txt pyproject.toml && sources_of_extensions) | sha256sum | cut -d' ' -f1
}
sources_of_extensions() { find setup.py learning -name '*.c' -o -name setup.py | sort | xargs -r cat; }

python_environment() {
  environment_is_current && return 0
  python_program >/dev/null || install_packages python "Python 3.11" "Python 3.11 or newer with venv"
  has_compiler >/dev/null 2>&1 || install_packages compiler "the C compiler for the tree kernel" "a C compiler and Python's headers"
  say "python: installing the locked packages into .venv"
  "$ROOT/.venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    "$(python_program)" -m venv --clear "$ROOT/.venv"
  install_locked || die "$FAILED" "the locked packages were not installed" "pip said the above" \
    "check that the Python package index can be reached"
  quietly "install of attestree itself" "$ROOT/.venv/bin/python" -m pip install --disable-pip-version-check --no-deps \
    --no-build-isolation --editable "$ROOT" ||
    die "$FAILED" "attestree was not installed" "pip said the above" "see the lines above"
  environment_key >"$ROOT/.venv/.locked"
}

# uv installs on all cores and links from its cache, which makes a second clone a matter of seconds; byte code is kept beside
# that cache. It does not read pip's configuration, so where that leads to another index, pip has the last word. Either
# checks every hash.
install_locked() {
  local python=$ROOT/.venv/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$ROOT/requirements/uv.txt" >/dev/null 2>&1 &&
    "$ROOT/.venv/bin/uv" pip install --quiet --python "$python" --require-hashes --cache-dir "$CACHE/uv" \
      -r "$ROOT/requirements/dev.txt" >/dev/null 2>&1 &&
    "$python" "$ROOT/network/lib/bytecode.py" "$(packages_of "$python")" "$(bytecode_store "$python")" >/dev/null 2>&1 &&
    return 0
  quietly "pip install of the locked packages" "$python" -m pip install --disable-pip-version-check --require-hashes \
    -r "$ROOT/requirements/dev.txt"
}

packages_of() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; } # PYTHON
bytecode_store() { # PYTHON
  echo "$CACHE/bytecode/$("$1" -c 'import sys; print(sys.implementation.cache_tag)')-$(sha256sum "$ROOT/requirements/dev.txt" |
    cut -c1-16)"
}

# --- Docker -------------------------------------------------------------------------------------------------------

ENGINE_LOG=/var/log/dockerd.log
ENGINE_SECONDS=120 # to start in
engine_answers() { docker version --format '{{.Server.Version}}'; }
has_compose() { docker compose version; }

# engine_suits: whether learners can run on the engine that answers; prints what is missing and why. The executor looks again, and
# closer, before it builds, pushes or pulls anything.
engine_suits() {
  local about
  ! is_podmans_command || { podman_lacks && return 1; }
  case $(docker version --format '{{range .Server.Components}}{{.Name}},{{end}}' 2>/dev/null) in
    *Podman*) podman_lacks && return 1 ;;
  esac
  about=$(docker info --format '{{.OperatingSystem}}|{{.OSType}} {{.MemoryLimit}} {{.SwapLimit}} {{.PidsLimit}} {{.CPUCfsQuota}}|{{.SecurityOptions}}|{{.DriverStatus}}' \
    2>/dev/null) || return 0
  case $about in
    "Docker Desktop"*)
      echo "this is Docker Desktop, whose engine is in a virtual machine: a learner's rows and socket cannot be mounted there." \
        "Install Docker in this system (docs/sandbox.md)"
      return 1
      ;;
    *"|linux true true true true|"*) ;;
    *)
      echo "the engine does not limit memory, swap, processes and processors. Give it all cgroup controllers (docs/sandbox.md)"
      return 1
      ;;
  esac
  case $about in
    *"name=seccomp,profile=default"* | *"name=seccomp,profile=builtin"*) ;;
    *)
      echo "the engine does not filter system calls by its default seccomp profile. Give it that back (docs/sandbox.md)"
      return 1
      ;;
  esac
  case $about in
    *io.containerd.snapshotter*) store_is_known || {
      echo "the engine keeps images in containerd's store and is older than Docker 26. Update it, or set" \
        '"features": {"containerd-snapshotter": false} in daemon.json'
      return 1
    } ;;
  esac
}
# Podman's docker command answers as if there were an engine, without one.
is_podmans_command() { case $(docker --version 2>/dev/null) in *[Pp]odman*) ;; *) return 1 ;; esac; }
podman_lacks() {
  echo "this is Podman, which shares IPC, adds writable places and does not limit the log, so a task's sandbox would not be what" \
    "the ledger says. Install Docker (docs/sandbox.md)"
}
store_is_known() { printf '%s\n' 1.45 "$(docker version --format '{{.Server.APIVersion}}')" | sort -CV; }

docker_engine() {
  if engine_answers >/dev/null 2>&1; then
    ! is_podmans_command || die "$DOCKER_UNREACHABLE" "the docker command is Podman's, and there is no Docker" \
      "$(podman_lacks)" "$(how_to_install engine "Docker 20.10 or newer"), which replaces podman-docker"
    engine_suits >/dev/null || say "docker: learners cannot run on this engine: $(engine_suits)"
    return 0
  fi
  case $(engine_answers 2>&1) in *"permission denied"*) die "$DOCKER_UNREACHABLE" "no permission on the Docker socket" \
    "$(engine_answers 2>&1)" "sudo usermod -aG docker \$USER, then log in again" ;; esac
  [ -z "${DOCKER_HOST:-}" ] || die "$DOCKER_UNREACHABLE" "the Docker engine at $DOCKER_HOST does not answer" \
    "$(engine_answers 2>&1)" "start it, or unset DOCKER_HOST: scripts/bootstrap starts an engine on this host"
  command -v dockerd >/dev/null || install_packages engine "the Docker engine" "Docker 20.10 or newer"
  (
    alone_with docker-engine
    engine_answers >/dev/null 2>&1 || start_engine
  )
}

start_engine() {
  [ "$(id -u)" = 0 ] || die "$DOCKER_UNREACHABLE" "the Docker engine is not running" "only root can start it" \
    "sudo systemctl start docker"
  if [ -d /run/systemd/system ]; then
    say "docker: starting the engine with systemd"
    systemctl start docker
  else
    say "docker: starting the engine (there is no systemd), log in $ENGINE_LOG"
    clear_dead_engine
    # Without what belongs to the command that happens to start it.
    # shellcheck disable=SC2154 # by alone_with
    env -u TMPDIR -u ATTESTREE_TEST_RUN setsid dockerd >>"$ENGINE_LOG" 2>&1 </dev/null {held}>&- &
  fi
  answers_soon || die "$DOCKER_UNREACHABLE" "the Docker engine does not answer within $ENGINE_SECONDS s" "$(last_words)" \
    "see what it says in $ENGINE_LOG or 'journalctl --unit docker', then run the command again"
}
answers_soon() {
  local end=$((SECONDS + ENGINE_SECONDS))
  until engine_answers >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    read -rt 0.2 <> <(:) || true
  done
}
# last_words: what an engine said before it gave up, or why none is reached.
last_words() { tail -n 1 "$ENGINE_LOG" 2>/dev/null | grep . || engine_answers 2>&1 | grep . || true; }

# A killed engine leaves process ids of processes that are gone, or its containerd alone.
clear_dead_engine() {
  local file pid
  for file in /run/docker.pid /run/docker/containerd/containerd.pid; do
    pid=$(cat "$file" 2>/dev/null) || continue
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = containerd ]; then
      kill "$pid" && eventually 20 "the old containerd ends" gone "$pid"
    fi
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] || rm -f "$file"
  done
}
gone() { [ ! -d "/proc/$1" ]; }

compose_plugin() {
  has_compose >/dev/null 2>&1 && return 0
  if [ -n "$(packages compose)" ] && [ "$(id -u)" = 0 ]; then
    install_packages compose "Docker Compose" "Docker Compose v2"
    has_compose >/dev/null 2>&1 && return 0
  fi
  say "docker compose: installing v$COMPOSE_VERSION for this user"
  local built plugins=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
  built=$(tools compose-plugin)
  mkdir -p "$plugins"
  ln -sf "$built/docker-compose" "$plugins/docker-compose"
  has_compose >/dev/null || die "$FAILED" "docker compose does not run" "$(has_compose 2>&1)" \
    "install the docker-compose-plugin package"
}
