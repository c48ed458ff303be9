"""crds/*.yaml is what the types say, byte for byte, and `--check` tells when it is not."""

from pathlib import Path

import pytest
import yaml

from turnout_api.crdgen import differences, main, render
from turnout_api.resources import KINDS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("folder", ["crds", "helm/turnout/files/crds"])
def test_the_stored_files_are_current(folder):
    assert differences(render(), ROOT / folder) == []


def test_the_chart_can_put_its_annotation_before_the_spec():
    assert [text.count("\nspec:\n") for text in render().values()] == [1] * len(KINDS)


def test_generating_twice_gives_the_same_bytes():
    assert render() == render()


def test_writing_then_checking_finds_no_difference(tmp_path):
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0


def test_a_file_edited_by_hand_fails_the_check_and_the_difference_is_shown(tmp_path, capsys):
    main([str(tmp_path)])
    edited = tmp_path / "guardians.yaml"
    edited.write_text(edited.read_text().replace("maxLength: 63", "maxLength: 64", 1))

    assert main([str(tmp_path), "--check"]) == 1
    said = capsys.readouterr().err
    assert "guardians.yaml: not what the types say" in said
    assert "maxLength: 64" in said
    assert "make crds" in said


def test_a_missing_file_and_one_that_no_kind_has_fail_the_check(tmp_path, capsys):
    main([str(tmp_path)])
    (tmp_path / "guardians.yaml").rename(tmp_path / "wardens.yaml")

    assert main([str(tmp_path), "--check"]) == 1
    said = capsys.readouterr().err
    assert "guardians.yaml: missing" in said
    assert "wardens.yaml: no kind has this file" in said


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_each_kind_has_status_conditions_and_a_short_name_in_the_category(kind):
    spec = yaml.safe_load(render()[f"{kind.plural}.yaml"])["spec"]
    version = spec["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]

    assert spec["names"]["shortNames"] == [kind.short]
    assert spec["names"]["categories"] == ["turnout"]
    assert version["subresources"] == {"status": {}}
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert "observedGeneration" in status
    assert {"Ready", "Age"} <= {column["name"] for column in version["additionalPrinterColumns"]}
