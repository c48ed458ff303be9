"""What people changed stands over the manifests, until the manifest of the same object is edited. Pure."""

from typing import Any

import pytest

from turnout_api.manifests import Manifest, read
from turnout_api.objects import ObjectWrite, StoredObject
from turnout_api.resolve import Key
from turnout_cli.local.overlay import Changed, Refused, changed_by, check_expected, key_of, merged, version_of

POOL = """\
apiVersion: turnout.dev/v1alpha1
kind: ModelPool
metadata: {{name: {name}}}
spec: {{members: [{{model: {model}}}]}}
---
"""


def files(**pools: str) -> tuple[Manifest, ...]:
    return read([("f.yaml", "".join(POOL.format(name=n, model=m) for n, m in pools.items()))]).manifests


def wish(name: str, model: str | None, expected: str | None = None) -> ObjectWrite:
    spec = None if model is None else {"members": [{"model": model}]}
    return ObjectWrite(kind="ModelPool", name=name, spec=spec, expected=expected, by="ann")


def holds(manifests: tuple[Manifest, ...], changed: Changed) -> dict[str, Any]:
    result = merged(manifests, changed).manifests
    return {key_of(m.document).name: m.document["spec"]["members"][0]["model"] for m in result}


def test_a_change_takes_the_place_of_its_manifest_and_a_new_object_comes_last() -> None:
    given = files(a="one", b="two")
    changed = changed_by(wish("a", "other"), given, {}, 0.0)
    changed = changed_by(wish("c", "three"), given, changed, 0.0)
    assert list(holds(given, changed).items()) == [("a", "other"), ("b", "two"), ("c", "three")]


def test_a_removal_hides_the_manifest_and_a_new_object_is_just_gone() -> None:
    given = files(a="one")
    changed = changed_by(wish("a", None), given, {}, 0.0)
    assert holds(given, changed) == {}
    new = changed_by(wish("c", "three"), given, {}, 0.0)
    assert changed_by(wish("c", None), given, new, 0.0) == {}


@pytest.mark.parametrize("later", [files(a="newer"), files(b="two")], ids=["edited", "removed"])
@pytest.mark.parametrize("model", ["other", None], ids=["changed", "removed"])
def test_a_newer_edit_of_the_manifest_holds_and_the_change_is_forgotten(
    later: tuple[Manifest, ...], model: str | None
) -> None:
    changed = changed_by(wish("a", model), files(a="one"), {}, 0.0)
    result = merged(later, changed)
    assert result.manifests == later
    assert result.forgotten == (Key("ModelPool", "a"),)
    assert not result.standing


def test_a_manifest_that_is_written_for_a_new_object_holds() -> None:
    changed = changed_by(wish("c", "three"), files(a="one"), {}, 0.0)
    assert holds(files(a="one", c="file"), changed) == {"a": "one", "c": "file"}


def test_a_second_change_stands_over_the_same_manifest() -> None:
    given = files(a="one")
    changed = changed_by(wish("a", "other"), given, {}, 0.0)
    changed = changed_by(wish("a", "third"), given, changed, 1.0)
    assert holds(given, changed) == {"a": "third"}
    assert holds(files(a="newer"), changed) == {"a": "newer"}


def test_a_new_object_is_of_the_namespace_of_the_manifests() -> None:
    text = POOL.format(name="a", model="one").replace("{name: a}", "{name: a, namespace: team}")
    given = read([("f.yaml", text)]).manifests
    changed = changed_by(wish("c", "three"), given, {}, 0.0)
    assert {manifest.namespace for manifest in merged(given, changed).manifests} == {"team"}


def test_a_version_is_that_of_what_counts() -> None:
    one, other = files(a="one", b="one")
    assert version_of(one.document) != version_of(other.document)
    assert version_of(one.document) == version_of({**one.document, "metadata": {"name": "a", "labels": {"x": "y"}}})


@pytest.mark.parametrize(
    ("asked", "is_there", "code"),
    [
        (wish("a", "m", "v1"), True, None),
        (wish("a", "m", "v0"), True, "stale"),
        (wish("a", "m", ""), True, "exists"),
        (wish("a", "m"), True, None),
        (wish("a", "m", ""), False, None),
        (wish("a", "m", "v1"), False, "not_found"),
        (wish("a", None), False, "not_found"),
        (wish("a", None, "v1"), True, None),
    ],
)
def test_a_wish_means_a_version(asked: ObjectWrite, is_there: bool, code: str | None) -> None:
    current = StoredObject(kind="ModelPool", name="a", version="v1", spec={}, changed_by="bob") if is_there else None
    if code is None:
        check_expected(asked, current)
        return
    with pytest.raises(Refused) as refused:
        check_expected(asked, current)
    assert refused.value.refusal.code == code
    if code == "stale":
        assert "by bob" in str(refused.value)


def test_any_number_that_a_manifest_may_hold_has_a_version() -> None:
    """Of a RouteTest's body, for example: what a person tries there is no reason to end."""
    given = [
        {"kind": "RouteTest", "metadata": {"name": "t"}, "spec": {"max_tokens": many}} for many in (10**30, 10**31)
    ]
    assert version_of(given[0]) != version_of(given[1])
    assert version_of(given[0]) == version_of(dict(given[0]))
