"""Writes the CustomResourceDefinitions: `python -m turnout_api.crdgen FOLDER…`, and with `--check` tells whether they are current.

The files are generated from the types and never edited by hand. The same types give the same bytes.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from turnout_api.resources import CATEGORY, GROUP, KINDS, VERSION, Column, Resource
from turnout_api.schema import Schema, structural

HEADER = "# Written by `make crds` from crds/turnout_api/resources. Edit the types, not this file.\n"
_DIFF_LINES = 20


def definition(kind: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    name = kind.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": kind.plural,
                "singular": name.lower(),
                "shortNames": [kind.short],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": _object_schema(kind)},
                }
            ],
        },
    }


def render() -> dict[str, str]:
    """File name → text of every CustomResourceDefinition."""
    return {f"{kind.plural}.yaml": HEADER + _dump(definition(kind)) for kind in KINDS.values()}


def differences(wanted: Mapping[str, str], folder: Path) -> list[str]:
    """What is not current in the folder, in lines for a person."""
    found = {path.name: path.read_text() for path in sorted(folder.glob("*.yaml"))}
    lines: list[str] = []
    for name in sorted(wanted.keys() | found.keys()):
        if name not in wanted:
            lines.append(f"{folder / name}: no kind has this file: remove it")
        elif name not in found:
            lines.append(f"{folder / name}: missing")
        elif found[name] != wanted[name]:
            diff = difflib.unified_diff(
                found[name].splitlines(), wanted[name].splitlines(), "stored", "from the types", n=0, lineterm=""
            )
            lines += [f"{folder / name}: not what the types say", *_head(list(diff)[2:])]
    return lines


def main(arguments: Iterable[str] | None = None) -> int:
    """The command. Exit 1 = `--check` found a difference."""
    parser = argparse.ArgumentParser(prog="python -m turnout_api.crdgen", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="folder", help="where the files are, each the same")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is not current")
    options = parser.parse_args(None if arguments is None else list(arguments))
    wanted = render()
    if options.check:
        lines = [line for folder in options.folders for line in differences(wanted, folder)]
        if lines:
            sys.stderr.write("\n".join([*lines, "the CRDs are not current: run `make crds`"]) + "\n")
        return 1 if lines else 0
    for folder in options.folders:
        for stale in set(folder.glob("*.yaml")) - {folder / name for name in wanted}:
            stale.unlink()
        for name, text in wanted.items():
            (folder / name).write_text(text)
    return 0


def _object_schema(kind: type[Resource]) -> Schema:
    """The schema of the whole object. Metadata is the API server's own, so it stands there as a bare object."""
    top: Schema = {"description": _words(kind.__doc__), "type": "object", "required": ["spec"]}
    fields = kind.model_fields
    top["properties"] = {
        "apiVersion": {"description": "Version of this kind's schema.", "type": "string"},
        "kind": {"description": "The kind of the object.", "type": "string"},
        "metadata": {"type": "object"},
        "spec": structural(_part(fields["spec"].annotation)),
        "status": structural(_part(fields["status"].annotation), defaults=False),
    }
    if kind.checks:
        top["x-kubernetes-validations"] = [{"rule": rule.cel, "message": rule.message} for rule in kind.checks]
    return top


def _part(annotation: Any) -> Any:  # noqa: ANN401 # what pydantic calls an annotation
    """The type itself of `T` and of `T | None`."""
    alternatives = [part for part in getattr(annotation, "__args__", ()) if part is not type(None)]
    return alternatives[0] if alternatives else annotation


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "description": column.description, "jsonPath": column.path}
    return shown | ({"priority": column.priority} if column.priority else {})


def _words(text: str | None) -> str:
    return " ".join((text or "").split())


def _head(lines: list[str]) -> list[str]:
    more = len(lines) - _DIFF_LINES
    return [f"  {line}" for line in lines[:_DIFF_LINES]] + ([f"  … {more} more lines"] if more > 0 else [])


class _Dumper(yaml.SafeDumper):
    """Without anchors: what is said twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _dump(document: Mapping[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main())
