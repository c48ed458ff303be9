"""Reading manifests for local mode: what cannot be read is named with its place, and changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout_cli.local.desired import Desired, Unreadable
from turnout_cli.local.reading import texts
from turnout_cli.sources import MAX_FILE_BYTES

Resolve = Callable[..., Desired]


def test_a_folder_is_read_as_kubectl_reads_it_but_for_the_state_folder(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/c.yml", "a-b/d.json", "notes.txt", ".turnout/nodes/x/router.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    found = texts([tmp_path], without=tmp_path / ".turnout")
    assert [Path(name).name for name in found] == ["c.yml", "d.json", "b.yaml"]


def test_a_file_that_is_too_large_for_a_manifest_is_named(tmp_path: Path) -> None:
    with (tmp_path / "video.yaml").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(Unreadable, match=r"larger than .*video\.yaml"):
        texts([tmp_path], without=tmp_path / "state")


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"gone\.yaml"):
        texts([tmp_path / "gone.yaml"], without=tmp_path / "state")
    with pytest.raises(Unreadable, match=str(tmp_path)):
        texts([tmp_path], without=tmp_path / "state")


def test_objects_of_two_namespaces_are_two_clusters(desired: Resolve, manifest: Any) -> None:
    text = manifest(("a", "m")).replace("{name: a}", "{name: a, namespace: other}")
    with pytest.raises(Unreadable, match="default, other"):
        desired(text)


def test_a_bad_object_keeps_what_was_accepted_of_it_and_the_rest_applies(desired: Resolve, manifest: Any) -> None:
    before = desired(manifest(("a", "m")))
    bad = manifest(("a", "m"), ("b", "other-model")).replace("id: m, backend: b", "id: other, backend: nowhere")
    after = desired(bad, before)
    (error,) = after.errors
    assert (error.file, "UnknownBackend" in error.message) == ("cluster.yaml", True)
    assert [model.id for model in after.resolution.configs["a"].models.local] == ["m"]
    assert "b" in after.resolution.configs


def test_secrets_that_only_kubernetes_has_are_warned_about_at_their_line(desired: Resolve, manifest: Any) -> None:
    text = manifest().replace("{role: Master}", "\n  role: Master\n  clients: {secretRef: {name: keys}}")
    (warning,) = desired(text).warnings
    assert text.splitlines()[warning.line - 1].strip().startswith("clients:")
