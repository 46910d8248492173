"""References: one way to name a version, and no tag that moves."""

import pytest

from executor.errors import UsageError
from executor.image.reference import Reference, split_repository


def test_name_with_and_without_version() -> None:
    assert Reference.parse("attestree/learner") == Reference("attestree/learner", None)  # type: ignore[arg-type]
    assert Reference.versioned("attestree/learner:1.2.0-3f2a") == ("attestree/learner", "1.2.0-3f2a")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":1",
        "learner:",
        "learner:latest",
        "Learner:1",
        "learner:1:2",
        "127.0.0.1:7005/attestree/learner:1",
        "learner@sha256:" + "0" * 64,
        "learner:1 ",
        "learner:../1",
        "le\u0430rner:1",
        "-learner:1",
        "a" * 129,
        "learner:" + "1" * 65,
    ],
)
def test_a2_what_names_no_particular_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Reference.parse(text)
    assert caught.value.code == "IMAGE_REFERENCE"


def test_a_version_is_needed_where_one_is_meant() -> None:
    with pytest.raises(UsageError) as caught:
        Reference.versioned("attestree/learner")
    assert caught.value.code == "IMAGE_REFERENCE"


def test_repository_has_a_host_and_a_name() -> None:
    assert split_repository("127.0.0.1:7005/attestree/learner") == ("127.0.0.1:7005", "attestree/learner")
