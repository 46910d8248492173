"""A learner that misbehaves in the way its rows name, and tells the broker what came of it."""

# A hostile program need not be tidy.
# ruff: noqa: PTH101, PTH109, PTH115, PTH118, PTH123, PTH208, SIM115

import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time

ROWS, STATE, BROKER = "/attestree/rows", "/attestree/state", "/attestree/broker.sock"


def attempt(action, *arguments):
    """The outcome of one attempt: its value, or the name of the error."""
    try:
        return {"done": repr(action(*arguments))[:200]}
    except BaseException as error:
        return {"refused": f"{type(error).__name__}: {error}"[:200]}


def wrote(path, mode="a"):
    with open(path, mode) as file:
        file.write("x")


def connected(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as wire:
        wire.settimeout(3)
        wire.connect(address)
        if kind == socket.SOCK_DGRAM:
            wire.send(b"x")


def called(name, *arguments):
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def syscall(number, *arguments):
    called("syscall", number, *arguments)


def sockets_and_devices():
    found = []
    for folder, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in {"/proc", "/sys"}]
        for name in files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISSOCK(mode) or stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
                found.append(path)
    return sorted(found)


def report(asked, key):
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
    return {
        "environment": dict(os.environ),
        "arguments": open("/proc/1/cmdline", "rb").read().decode().split("\0")[:-1],
        "directory": os.getcwd(),
        "hostname": socket.gethostname(),
        "status": {
            name: status[name].strip()
            for name in (
                "Uid",
                "Gid",
                "Groups",
                "CapInh",
                "CapPrm",
                "CapEff",
                "CapBnd",
                "CapAmb",
                "NoNewPrivs",
                "Seccomp",
            )
        },
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")},
        "mounts": open("/proc/mounts").read().splitlines(),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "processes": sorted(int(name) for name in os.listdir("/proc") if name.isdigit()),
        "sockets_and_devices": sockets_and_devices(),
        "resolver": open("/etc/resolv.conf").read(),
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
            for name in ("core", "fsize", "nofile")
        },
        "key": hashlib.sha256(key).hexdigest(),
        "stdin_left": sys.stdin.buffer.read().hex(),
        "user_of_a_set_uid_program": subprocess.check_output(["/usr/bin/root-id", "-u"], text=True).strip(),
        "listed": {path: sorted(os.listdir(path)) for path in asked.get("list", [])},
    }


def escape(asked, key):
    unshare_user, mount_flags = 0x10000000, 0
    return {
        "docker socket": attempt(connected, socket.AF_UNIX, "/var/run/docker.sock"),
        "docker socket under run": attempt(connected, socket.AF_UNIX, "/run/docker.sock"),
        "abstract socket of the host": attempt(connected, socket.AF_UNIX, "\0" + asked["abstract"]),
        "become root": attempt(os.setuid, 0),
        "new user namespace": attempt(called, "unshare", unshare_user),
        "mount": attempt(called, "mount", b"none", b"/tmp", b"tmpfs", mount_flags, None),
        "remount": attempt(called, "mount", b"none", b"/", None, 0x20, None),
        "make a device": attempt(os.mknod, "/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)),
        "read the host's memory": attempt(open, "/dev/mem", "rb"),
        "read the kernel's log": attempt(open, "/dev/kmsg", "rb"),
        "chroot": attempt(os.chroot, "/tmp"),
        "keyring of the kernel": attempt(syscall, 250, 0, -3, 0, 0, 0),
        "bpf": attempt(syscall, 321, 0, 0, 0),
        "set the clock": attempt(time.clock_settime, time.CLOCK_REALTIME, 0),
        "set the host name": attempt(socket.sethostname, "other"),
        "raise a limit": attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (4096, 4096)),
        "press the magic key": attempt(wrote, "/proc/sysrq-trigger"),
        "leave the cgroup": attempt(wrote, "/sys/fs/cgroup/memory/tasks"),
        "raise the memory limit": attempt(wrote, "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
        "see the host through core_pattern": attempt(wrote, "/proc/sys/kernel/core_pattern"),
    }


def write(asked, key):
    def executed():
        with open("/tmp/program", "w") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod("/tmp/program", 0o755)
        subprocess.run(["/tmp/program"], check=True)

    places = [
        ROWS,
        STATE,
        "/attestree/new",
        "/new",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/passwd",
        "/run/new",
        "/var/tmp/new",
        "/usr/lib/new",
        "/dev/new",
        "/opt/venv/lib/python3.11/site-packages/learner.py",
    ]
    return {
        "write": {path: attempt(wrote, path) for path in places},
        "truncate": {path: attempt(wrote, path, "w") for path in (ROWS, STATE)},
        "remove": {path: attempt(os.unlink, path) for path in (ROWS, STATE, BROKER)},
        "change mode": {path: attempt(os.chmod, path, 0o777) for path in (ROWS, STATE, BROKER)},
        "run from /tmp": attempt(executed),
        "write to /tmp": attempt(wrote, "/tmp/allowed"),
    }


def egress(asked, key):
    inet, inet6 = socket.AF_INET, socket.AF_INET6
    return {
        **{
            f"connect {host}:{port}": attempt(connected, inet, (host, port))
            for host, port in asked["addresses"]
        },
        "datagram to a resolver": attempt(connected, inet, ("1.1.1.1", 53), socket.SOCK_DGRAM),
        "connect by IPv6": attempt(connected, inet6, ("2606:4700:4700::1111", 443)),
        "resolve a name": attempt(socket.getaddrinfo, "example.com", 443),
        "resolve a peer": attempt(socket.getaddrinfo, "peer.org1", 7151),
        "raw socket": attempt(socket.socket, inet, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        "packet socket": attempt(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
        "virtual machine's socket": attempt(connected, socket.AF_VSOCK, (2, 22)),
    }


def fork_bomb(asked, key):
    made = []
    try:
        while len(made) < 100_000:
            child = os.fork()
            if child == 0:
                signal.pause()
            made.append(child)
        refused = "nothing"
    except OSError as error:
        refused = error.strerror
    for child in made:
        os.kill(child, signal.SIGKILL)
    return {"made": len(made), "refused": refused}


def fill(folder):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    written, block = 0, b"x" * 65_536
    try:
        for number in range(10_000):
            with open(f"{folder}/file{number}", "wb", buffering=0) as file:
                while written < 1 << 30:
                    written += file.write(block)
    except OSError as error:
        return {"written": written, "refused": error.strerror}
    return {"written": written, "refused": "nothing"}


def disk(asked, key):
    return {folder: fill(folder) for folder in ("/tmp", "/dev/shm")}


def memory(asked, key):
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * (1 << 20)))


def memory_of_a_child(asked, key):
    child = os.fork()
    if child == 0:
        memory(asked, key)
    return {"status": os.waitpid(child, 0)[1]}


def log(asked, key):
    line = ("\033[31m" + "x" * 150 + "\n").encode()
    for _ in range(asked["bytes"] // len(line)):
        os.write(2, line)
    os.write(2, b"the end\x07 \xff\n")


def long_line(asked, key):
    for _ in range(asked["bytes"] >> 16):
        os.write(1, b"x" * 65_536)


def endless(asked, key):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        pass


def leave(asked, key):
    sys.exit(asked["code"])


def die(asked, key):
    ctypes.string_at(0)


def pause(asked, key):
    tell({"started": True})
    signal.pause()


BEHAVIOURS = {
    behaviour.__name__: behaviour
    for behaviour in (
        report,
        escape,
        write,
        egress,
        fork_bomb,
        disk,
        memory,
        memory_of_a_child,
        log,
        long_line,
        endless,
        leave,
        die,
        pause,
    )
}


def tell(found):
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(BROKER)
        wire.sendall(json.dumps(found).encode())


def main():
    with open(ROWS) as file:
        asked = json.load(file)
    if asked.get("early"):
        sys.exit(asked["code"])
    key = sys.stdin.buffer.read(32)
    found = BEHAVIOURS[asked["behaviour"]](asked, key)
    if found is not None:
        tell(found)


main()
