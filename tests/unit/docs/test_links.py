"""Links between the pages lead somewhere, and the files that they name exist."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from docs.generator.repository import ROOT

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def pages() -> list[Path]:
    """Return every Markdown file of the repository that is written for readers."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=150,
    ).stdout  # fmt: skip
    return sorted(ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists())


@cache
def anchors(page: Path) -> set[str]:
    """Return what a page's headings are called in links, as the usual viewers of Markdown call them."""
    found: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = found.get(name, 0)
        found[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    text = CODE.sub("", FENCE.sub("", page.read_text()))
    broken = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not _is_there(target, anchor):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path):
    """A path in code font that begins with one of our folders; state/ and build/ are made while running."""
    named = re.findall(r"`([a-z-]+/[\w./-]+)`", FENCE.sub("", page.read_text()))
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    missing = [
        name
        for name in named
        if name.partition("/")[0] in folders - {"build"}
        and "/state" not in name
        and not (ROOT / name).exists()
    ]
    assert missing == []


def _is_there(target: Path, anchor: str) -> bool:
    if not (target.exists() and target.is_relative_to(ROOT)):
        return False
    return not anchor or target.suffix != ".md" or anchor in anchors(target)
