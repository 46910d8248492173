"""The image chaincode: a version is written once, and retired when no new process should run it."""

from dataclasses import replace
from typing import ClassVar

from chaincode.common import (
    DEFAULT_PAGE,
    STAFF,
    Role,
    allow,
    caller_of,
    history_page,
    page,
    provenance,
    read,
    write,
)
from chaincode.image.rebuilds import EVENTS, Rebuilds
from chaincode.shim import Context, evaluate, submit
from protocol.agreement.image import Image, check_text
from protocol.agreement.lifecycle import IMAGE, ImageState, ImageTransition
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys
from protocol.ledger.common import History, Page, ReasonedProvenance
from protocol.ledger.images import ImageNameRecord, ImageRecord, RebuildRecord
from protocol.ledger.record import LedgerRecord


class ImageContract(Rebuilds):
    """Image versions by name, each with its digests and its provenance."""

    name = "image"
    events: ClassVar[dict[str, str]] = {
        "ImageRegistered": "a version was registered: name, version, image_id, organisation",
        "ImageRetired": "a version was retired: name, version, organisation",
        **EVENTS,
    }
    values: ClassVar[dict[str, type[LedgerRecord]]] = {
        "image": ImageRecord,
        "imagename": ImageNameRecord,
        "rebuild": RebuildRecord,
    }

    @submit
    @allow(Role.DATA_SCIENTIST)
    def register(  # noqa: PLR0917
        self,
        ctx: Context,
        name: str,
        version: str,
        manifest_digest: str,
        image_id: str,
        repository: str,
        description: str = "",
    ) -> ImageRecord:
        """Register a version of an image; a version is written once.

        A name belongs to the organisation that registered its first version: nobody else adds to it.
        `manifest_digest` is what a registry serves, `image_id` (the digest of the configuration) is what
        runs; both are `sha256:` and 64 lower-case hex digits. Returns the record.
        """
        image = Image.parse(
            name,
            version,
            manifest_digest=manifest_digest,
            image_id=image_id,
            repository=repository,
            description=description,
        )
        image.check_registrable()
        _claim_name(ctx, name)
        key = keys.image(name, version)
        if ctx.get(key) is not None:
            raise StateError("IMAGE_EXISTS", f"{name} {version} is on the ledger")
        status = IMAGE.after(ImageTransition.REGISTER, ImageState.ABSENT)
        record = ImageRecord(image, status, provenance(ctx))
        write(ctx, key, record)
        organisation = caller_of(ctx).organisation
        self.announce(
            ctx,
            "ImageRegistered",
            {"name": name, "version": version, "image_id": image_id, "organisation": organisation},
        )
        return record

    @submit
    @allow(*STAFF)
    def retire(self, ctx: Context, name: str, version: str, reason: str = "") -> ImageRecord:
        """Retire a version, by the organisation that registered it: it is not proposed any more.

        Neither in a new process nor for one that runs another. Those that were proposed with it, or asked for
        it, before may go on: their members decide. Returns the record.
        """
        check_text(reason, "the reason")
        record = _found(ctx, name, version)
        caller = caller_of(ctx)
        caller.need_organisation(record.registered.organisation)
        status = IMAGE.after(ImageTransition.RETIRE, record.status)
        record = replace(record, status=status, retired=ReasonedProvenance.of(provenance(ctx), reason))
        write(ctx, keys.image(name, version), record)
        payload = {"name": name, "version": version, "organisation": caller.organisation}
        self.announce(ctx, "ImageRetired", {**payload})
        return record

    @evaluate
    def get(self, ctx: Context, name: str, version: str) -> ImageRecord:
        """Return the record of a version."""
        return _found(ctx, name, version)

    @evaluate
    def list(
        self, ctx: Context, organisation: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ImageRecord]:
        """List versions by name, all or those one organisation registered: `items`, `bookmark`."""
        if organisation:
            parse_organisation(organisation)

        def show(record: ImageRecord) -> ImageRecord | None:
            return record if organisation in ("", record.registered.organisation) else None

        return page(ctx, ("image",), size, bookmark, ImageRecord, show)

    @evaluate
    def history(
        self, ctx: Context, name: str, version: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[ImageRecord]:
        """List the changes of a version, newest first: `items` of tx, time and value, `bookmark`."""
        _found(ctx, name, version)
        return history_page(ctx, keys.image(name, version), size, bookmark, ImageRecord)


def _claim_name(ctx: Context, name: str) -> None:
    """Return if the name is the caller's organisation's, or becomes it by this first version."""
    organisation = caller_of(ctx).organisation
    owned = read(ctx, keys.imagename(name), ImageNameRecord)
    if owned is None:
        write(ctx, keys.imagename(name), ImageNameRecord(name, organisation, provenance(ctx)))
    elif owned.organisation != organisation:
        raise AccessError("IMAGE_OWNER", f"the name {name} belongs to {owned.organisation}")


def _found(ctx: Context, name: str, version: str) -> ImageRecord:
    record = read(ctx, keys.image(name, version), ImageRecord)
    if record is None:
        raise StateError("IMAGE_UNKNOWN", f"{name} {version} is not registered")
    return record
