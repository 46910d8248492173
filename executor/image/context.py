"""What an image of ours is built from, as one archive that depends on the content of the sources alone."""

import io
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from executor.errors import UsageError
from protocol import canonical
from protocol.digest import Digest
from protocol.values import dataclass

# A new way of building is a new image: this number is part of the key.
RECIPE = 1
_SUFFIXES = {".py", ".typed"}


@dataclass(frozen=True)
class Recipe:
    """What goes into one of the images."""

    name: str
    """The image's."""
    wheels: str
    """Which of the locked requirements it has."""
    packages: dict[str, str]
    """By folder of the sources, the package's name."""
    files: dict[str, str]
    """By file of the sources, its name in the build."""


LEARNER = Recipe(
    "attestree/learner",
    "learner",
    {"protocol": "protocol", "learning": "learning", "learner-image/learner": "learner"},
    {
        "learner-image/Dockerfile": "Dockerfile",
        "learner-image/rootfs.py": "rootfs.py",
        "requirements/learner.txt": "requirements.txt",
    },
)
CHAINCODE = Recipe(
    "attestree/chaincode",
    "chaincode",
    {"protocol": "protocol", "chaincode": "chaincode"},
    {
        "chaincode/Dockerfile": "Dockerfile",
        "learner-image/rootfs.py": "rootfs.py",
        "requirements/chaincode.txt": "requirements.txt",
    },
)


@dataclass(frozen=True)
class Sources:
    """The files that go into an image, by their names in the build; locked wheels apart."""

    root: Path
    files: dict[str, Path]
    recipe: Recipe = LEARNER

    @classmethod
    def find(cls, root: Path, recipe: Recipe = LEARNER) -> "Sources":
        """Collect the sources under the project's root."""
        files = {name: root / path for path, name in recipe.files.items()}
        for path, name in recipe.packages.items():
            for file in _modules(root / path):
                files[f"packages/{name}/{file.relative_to(root / path)}"] = file
        missing = [str(path.relative_to(root)) for path in files.values() if not path.is_file()]
        missing += [
            path for path, name in recipe.packages.items() if f"packages/{name}/__init__.py" not in files
        ]
        if missing:
            raise UsageError(
                "SOURCES_MISSING",
                f"{root} has no {missing[0]}",
            )
        return cls(root, dict(sorted(files.items())), recipe)

    def key(self, base_layers: Iterable[str]) -> str:
        """Name the content: 32 hex digits that move when a source, a lock, or the base moves."""
        record: dict[str, canonical.Record] = {
            "recipe": RECIPE,
            "base": list(base_layers),
            "files": {name: str(Digest.of(path.read_bytes())) for name, path in self.files.items()},
        }
        return canonical.digest(record).hex[:32]

    def archive(self, wheels: Path) -> io.BytesIO:
        """Pack sources and wheels in the order of their names, without times and owners."""
        packed = io.BytesIO()
        everything = self.files | {f"wheels/{path.name}": path for path in wheels.glob("*.whl")}
        with tarfile.open(fileobj=packed, mode="w:", format=tarfile.PAX_FORMAT) as archive:
            for name, path in sorted(everything.items()):
                entry = tarfile.TarInfo(name)
                content = path.read_bytes()
                entry.size, entry.mode = len(content), 0o644
                archive.addfile(entry, io.BytesIO(content))
        packed.seek(0)
        return packed

    def changed(self) -> list[str]:
        """List the sources that differ from the commit that is checked out; none where git cannot tell."""
        paths = sorted({*self.recipe.packages, *self.recipe.files})
        command = ["git", "-C", str(self.root), "status", "--porcelain", "--", *paths]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        except (OSError, subprocess.SubprocessError):
            return []
        return [line[3:] for line in ran.stdout.splitlines()]


def _modules(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix in _SUFFIXES)
