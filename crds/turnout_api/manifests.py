"""YAML text → Turnout's objects, with file and line for every path in them.

Problem: a person who runs `turnout validate` or `turnout up` on a folder of manifests wants `cluster.yaml:31: …`, while
a YAML loader gives values without places. Idea: read the text into YAML's node graph, which has the places, and make
values and places of it side by side.

Invariants: a scalar is read as kubectl reads it (YAML 1.1 as Go has it: `yes` is true, `22:00` and `2026-01-01` are
texts), so that a file means the same here and in a cluster; what kubectl would refuse (a key twice, a tag) is a
problem here; documents of other groups are passed over with a note, since a Secret beside a RouterNode is normal; an
object that stands there twice is a problem at the second.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from turnout_api.resources import API_VERSION, GROUP, KINDS, Resource
from turnout_api.resources.common import DEFAULT_NAMESPACE
from turnout_api.resources.refusals import Path, nearest
from turnout_api.yamlnodes import Composed, Unreadable, compose


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something to say about a place in a file."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of Turnout's as it stands in a file. Its schema is not judged yet."""

    kind: type[Resource]
    document: Mapping[str, Any]
    """JSON values."""
    file: str
    lines: Mapping[Path, int]

    @property
    def name(self) -> str:
        """Name of the object; empty where the file gives none."""
        return str(_metadata(self.document).get("name") or "")

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return str(_metadata(self.document).get("namespace") or DEFAULT_NAMESPACE)

    def line_of(self, path: Path = ()) -> int:
        """The line of a field; of the nearest field around it where it is not written."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def where(self, path: Path = ()) -> str:
        """`cluster.yaml:31`."""
        return f"{self.file}:{self.line_of(path)}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What some files hold: the objects, what could not be read, and what was passed over."""

    manifests: tuple[Manifest, ...]
    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...]


def read(sources: Iterable[tuple[str, str]]) -> Reading:
    """The objects of (file name, text) pairs, in their order. Never raises: problems are in the answer."""
    reader = _Reader()
    for file, text in sources:
        reader.read(file, text)
    return Reading(tuple(reader.manifests), tuple(reader.problems), tuple(reader.notes))


@dataclass(slots=True)
class _Reader:
    """What was read so far, over all files."""

    manifests: list[Manifest] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    places: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def read(self, file: str, text: str) -> None:
        try:
            for composed in compose(text):
                self._read_document(file, composed)
        except Unreadable as error:
            self.problems.append(Finding(file, error.line, str(error)))

    def _read_document(self, file: str, composed: Composed) -> None:
        self.problems += [Finding(file, line, message) for line, message in composed.problems]
        for document, lines in _objects(composed):
            if isinstance(document, Mapping):
                self._read_object(file, document, lines)
            else:
                message = "a manifest is a mapping with apiVersion, kind, metadata and spec"
                self.problems.append(Finding(file, lines[()], message))

    def _read_object(self, file: str, document: Mapping[str, Any], lines: Mapping[Path, int]) -> None:
        version, kind = str(document.get("apiVersion") or ""), str(document.get("kind") or "")
        line = lines[()]
        if problem := _not_ours_but_meant(version, kind):
            self.problems.append(Finding(file, lines.get(("kind",), line), problem))
            return
        if version != API_VERSION:
            named = f"{kind} {_metadata(document).get('name') or ''}".strip()
            self.notes.append(Finding(file, line, f"{named}: not of {GROUP}, passed over"))
            return
        manifest = Manifest(KINDS[kind], document, file, lines)
        key = (kind, manifest.namespace, manifest.name)
        first = self.places.setdefault(key, manifest.where(("metadata", "name")))
        here = manifest.where(("metadata", "name"))
        if manifest.name and first != here:
            message = f"{kind} {manifest.name} is declared a second time, first at {first}: remove or rename one"
            self.problems.append(Finding(file, manifest.line_of(("metadata", "name")), message))
            return
        self.manifests.append(manifest)


def _objects(composed: Composed) -> Iterator[tuple[object, Mapping[Path, int]]]:
    """The document, or the items of one that is a list of objects, as `kubectl get -o yaml` writes them; each with its lines."""
    value = composed.value
    items = value.get("items") if isinstance(value, Mapping) and str(value.get("kind")).endswith("List") else None
    if not isinstance(items, list):
        yield value, composed.lines
        return
    lines: list[dict[Path, int]] = [{} for _ in items]
    for path, line in composed.lines.items():
        if path[:1] == ("items",) and len(path) > 1 and isinstance(path[1], int):
            lines[path[1]][path[2:]] = line
    yield from zip(items, lines, strict=True)


def _not_ours_but_meant(version: str, kind: str) -> str:
    """What is wrong with a document that was surely meant for Turnout; empty = nothing, or it is somebody else's."""
    group = version.partition("/")[0]
    if not version and not kind:
        return "no apiVersion and no kind: this is no manifest"
    if group != GROUP:
        meant = kind in KINDS and (not version or nearest(group, [GROUP]) != "")
        return f"{kind}: apiVersion must be {API_VERSION}" if meant or not version else ""
    if kind not in KINDS:
        near = nearest(kind, KINDS)
        return f"{kind or 'no kind'}: no kind of {GROUP}; " + (
            f"did you mean {near}?" if near else f"the kinds are {', '.join(KINDS)}"
        )
    return "" if version == API_VERSION else f"{version} is not served: write apiVersion: {API_VERSION}"


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
