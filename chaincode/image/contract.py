"""The image chaincode: a version is written once, and retired when it should start no new tasks."""

from typing import Any, ClassVar

from chaincode.common import (
    DEFAULT_PAGE,
    LedgerContract,
    Role,
    allow,
    caller_of,
    history_page,
    page,
    provenance,
    read,
    write,
)
from chaincode.common.records import VERSION
from chaincode.shim import Context, evaluate, submit
from protocol.agreement.image import Image, check_text
from protocol.agreement.lifecycle import IMAGE, ImageState, ImageTransition
from protocol.errors import StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys


class ImageRegistry(LedgerContract):
    """Image versions by name, each with its digests and its provenance."""

    name = "image"
    events: ClassVar[dict[str, str]] = {
        "ImageRegistered": "a version was registered: name, version, image_id, organisation",
        "ImageRetired": "a version was retired: name, version, organisation",
    }
    values: ClassVar[dict[str, dict[str, str]]] = {
        "image": {
            "version": "1, the version of this record",
            "image": "name, version, manifest_digest, image_id, repository, description, as registered",
            "status": "registered or retired",
            "registered": "provenance of the registration",
            "retired": "null, or provenance of the retirement with its reason",
        }
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
    ) -> dict[str, Any]:
        """Register a version of an image; a version is written once.

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
        key = keys.image(name, version)
        if read(ctx, key) is not None:
            raise StateError("IMAGE_EXISTS", f"{name} {version} is on the ledger")
        record = {
            "version": VERSION,
            "image": image.to_dict(),
            "status": IMAGE.after(ImageTransition.REGISTER, ImageState.ABSENT).value,
            "registered": provenance(ctx),
            "retired": None,
        }
        write(ctx, key, record)
        organisation = caller_of(ctx).organisation
        self.announce(
            ctx,
            "ImageRegistered",
            {"name": name, "version": version, "image_id": image_id, "organisation": organisation},
        )
        return record

    @submit
    @allow(Role.DATA_SCIENTIST, Role.ADMIN)
    def retire(self, ctx: Context, name: str, version: str, reason: str = "") -> dict[str, Any]:
        """Retire a version, by the organisation that registered it: it starts no new tasks.

        Returns the record.
        """
        check_text(reason, "the reason")
        record = _found(ctx, name, version)
        caller = caller_of(ctx)
        caller.need_organisation(record["registered"]["organisation"])
        record["status"] = IMAGE.after(ImageTransition.RETIRE, IMAGE.state(record["status"])).value
        record["retired"] = {**provenance(ctx), "reason": reason}
        write(ctx, keys.image(name, version), record)
        payload = {"name": name, "version": version, "organisation": caller.organisation}
        self.announce(ctx, "ImageRetired", {**payload})
        return record

    @evaluate
    def get(self, ctx: Context, name: str, version: str) -> dict[str, Any]:
        """Return the record of a version."""
        return _found(ctx, name, version)

    @evaluate
    def list(
        self, ctx: Context, organisation: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List versions by name, all or those one organisation registered: `items`, `bookmark`."""
        if organisation:
            parse_organisation(organisation)

        def show(record: dict[str, Any]) -> dict[str, Any] | None:
            return record if organisation in ("", record["registered"]["organisation"]) else None

        return page(ctx, ("image",), size, bookmark, show)

    @evaluate
    def history(
        self, ctx: Context, name: str, version: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> dict[str, Any]:
        """List the changes of a version, newest first: `items` of tx, time and value, `bookmark`."""
        _found(ctx, name, version)
        return history_page(ctx, keys.image(name, version), size, bookmark)


def _found(ctx: Context, name: str, version: str) -> dict[str, Any]:
    record = read(ctx, keys.image(name, version))
    if record is None:
        raise StateError("IMAGE_UNKNOWN", f"{name} {version} is not registered")
    return record
