"""Write everything in docs/ that is made from the sources: `scripts/docs`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from chaincode import document

from . import api, codes, module_map, pictures
from .repository import ROOT


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every page, and every picture's text, that is made from the sources."""
    yield document.FILE, document.document()
    yield from api.pages().items()
    yield codes.PAGE, codes.page()
    yield module_map.PAGE, module_map.page()
    yield module_map.PICTURE, module_map.picture()


def main() -> int:
    """Write what differs from its sources and say what was written."""
    for path, text in pages():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(path.relative_to(ROOT))
    try:
        for source in pictures.sources():
            if pictures.update(source):
                print(pictures.picture_of(source).relative_to(ROOT))
    except pictures.DrawError as error:
        print(f"scripts/docs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
