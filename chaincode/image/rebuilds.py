"""Rebuilds: what organisations get that build an image version from its source by themselves."""

from chaincode.common import (
    DEFAULT_PAGE,
    STAFF,
    LedgerContract,
    Role,
    allow,
    caller_of,
    history_page,
    keyed_page,
    provenance,
    read,
)
from chaincode.common.calls import IMAGE
from chaincode.common.own import find_word, is_word, write_word
from chaincode.common.pages import from_bookmark
from chaincode.shim import Context, evaluate, submit
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import parse_image_name, parse_image_version, parse_organisation
from protocol.ledger import keys
from protocol.ledger.common import History, ImageVersion, Page
from protocol.ledger.images import ImageRecord, RebuildRecord

EVENTS = {
    "ImageRebuilt": "an organisation built a version from source: name, version, image_id, same, organisation"
}


class Rebuilds(LedgerContract):
    """Attest, ListRebuilds and RebuildHistory."""

    @submit
    @allow(*STAFF, Role.AUDITOR)
    def attest(self, ctx: Context, name: str, version: str, image_id: str) -> RebuildRecord:
        """Say which image id the source of a version gave your organisation, the registered one or another.

        One statement for each organisation and version; a later one replaces it, and its history stays.
        """
        registered = read(ctx, keys.image(name, version), ImageRecord)
        if registered is None:
            raise StateError("IMAGE_UNKNOWN", f"{name} {version} is not registered")
        found, organisation = Digest.parse(image_id), caller_of(ctx).organisation
        key = keys.rebuild(name, version, organisation)
        before = find_word(ctx, organisation, key, RebuildRecord)
        if before is not None and before.image_id == found:
            raise StateError(
                "IMAGE_REBUILT", f"{organisation} has said of {name} {version} that it is {found}"
            )
        same = found == registered.image.image_id
        record = RebuildRecord(ImageVersion(name, version), organisation, found, same, provenance(ctx))
        write_word(ctx, organisation, key, record)
        self.announce(
            ctx,
            "ImageRebuilt",
            {
                "name": name,
                "version": version,
                "image_id": image_id,
                "same": same,
                "organisation": organisation,
            },
        )
        return record

    @evaluate
    def list_rebuilds(
        self, ctx: Context, name: str, version: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[RebuildRecord]:
        """List what each organisation of the channel got that built a version from its source.

        What its organisation did not endorse itself is left out.
        Read by keys: who starts a process asks this, and Fabric lets nobody write who has read a page.
        """
        parts = [parse_image_name(name), parse_image_version(version)]
        first = from_bookmark("rebuild", parts, bookmark)
        wanted = (keys.rebuild(name, version, found) for found in ctx.organisations(IMAGE))

        def is_own(key: str, record: RebuildRecord) -> bool:
            return is_word(ctx, record.organisation, key, record)

        return keyed_page(ctx, (key for key in wanted if key >= first), size, RebuildRecord, is_own)

    @evaluate
    def rebuild_history(  # noqa: PLR0917
        self,
        ctx: Context,
        name: str,
        version: str,
        organisation: str,
        size: int = DEFAULT_PAGE,
        bookmark: str = "",
    ) -> History[RebuildRecord]:
        """List what an organisation has said of a version, newest first."""
        key = keys.rebuild(name, version, parse_organisation(organisation))
        return history_page(ctx, key, size, bookmark, RebuildRecord)
