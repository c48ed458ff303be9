"""`turnout validate`: everything that the operator would say about manifests, offline.

Exit codes: 0 = every object is accepted (warnings may be there), 1 = one is not, or something cannot be read.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from turnout_api.manifests import Finding, Manifest, read
from turnout_api.resolve import Key, PlacedAnywhere, TestOutcome, Verdict, declare, resolve
from turnout_cli.output import Output, print_document, table_console
from turnout_cli.sources import expand, text_of, why_unread

STDIN = "-"


def validate(
    *,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Manifests; a folder means its YAML and JSON files, - the standard input."),
    ],
    output: Annotated[Output, typer.Option(case_sensitive=False, help="table is for people.")] = Output.TABLE,
) -> None:
    """Say what the operator would say about manifests: accepted or not, why, and what to do."""
    report = judge(*gather(files))
    match output:
        case Output.TABLE:
            _print_table(report)
        case Output.JSON | Output.YAML:
            print_document(report.as_data(), output)
    raise typer.Exit(0 if report.ok else 1)


@dataclass(frozen=True, slots=True)
class Judged:
    """One object in its file, and what is said about it."""

    manifest: Manifest
    verdict: Verdict
    tested: TestOutcome | None = None
    """Of a RouteTest, when something serves at all."""

    @property
    def result(self) -> str:
        """Pass or Fail; empty for other kinds, and where no test could be run."""
        return "" if self.tested is None else "Pass" if self.tested.passed else "Fail"

    def as_data(self) -> dict[str, object]:
        """The shape of `--output json`. `line` is that of the first problem, else the object's."""
        verdict = self.verdict
        return {
            "kind": verdict.kind,
            "namespace": verdict.namespace,
            "name": verdict.name,
            "file": self.manifest.file,
            "line": self.manifest.line_of(verdict.path),
            "accepted": verdict.accepted,
            "reason": str(verdict.reason),
            "message": verdict.message,
            "warnings": [str(warning) for warning in verdict.warnings],
        } | ({"result": self.result} if self.result else {})


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is said about some files."""

    judged: Sequence[Judged]
    errors: Sequence[Finding]
    notes: Sequence[Finding]

    @property
    def ok(self) -> bool:
        """Whether everything could be read and is accepted."""
        return not self.errors and all(judged.verdict.accepted for judged in self.judged)

    def as_data(self) -> dict[str, object]:
        """The shape of `--output json`."""
        return {"resources": [j.as_data() for j in self.judged], "errors": [asdict(error) for error in self.errors]}


def gather(files: Iterable[str]) -> tuple[list[tuple[str, str]], list[Finding]]:
    """(file name, text) of what was named, folders opened, and what could not be read."""
    sources: list[tuple[str, str]] = []
    errors: list[Finding] = []
    for file in files:
        try:
            sources += _sources(file)
        except (OSError, UnicodeDecodeError) as error:
            errors.append(Finding(file, 1, f"cannot be read: {why_unread(error)}"))
    return sources, errors


def judge(sources: Sequence[tuple[str, str]], errors: Sequence[Finding] = ()) -> Report:
    """The verdict of each object. Objects stand in the order of the files, which counts as that of their creation."""
    reading = read(sources)
    if sources and not (reading.manifests or reading.problems or errors):  # the wrong file must not pass as a good one
        errors = [Finding(sources[0][0], 1, "no object of turnout.dev is in what was named")]
    spaces: dict[str, list[Manifest]] = {}
    for manifest in reading.manifests:
        spaces.setdefault(manifest.namespace, []).append(manifest)
    judged = [one for manifests in spaces.values() for one in _judge_namespace(manifests)]
    return Report(judged, [*errors, *reading.problems], reading.notes)


def _judge_namespace(manifests: Sequence[Manifest]) -> list[Judged]:
    declared = [declare(manifest.document) for manifest in manifests]
    resolution = resolve(declared, placement=PlacedAnywhere(), generation=0)
    return [
        Judged(manifest, verdict, resolution.tests.get(Key(verdict.kind, verdict.name)))
        for manifest, verdict in zip(manifests, resolution.verdicts, strict=True)
    ]


def _sources(file: str) -> list[tuple[str, str]]:
    """The file under the name that was given, or each manifest of the folder under its own."""
    if file == STDIN:
        return [(file, sys.stdin.read())]
    if not Path(file).is_dir():
        return [(file, text_of(Path(file)))]
    inside = expand(Path(file))
    if not inside:
        raise FileNotFoundError(None, "the folder holds no YAML or JSON files")
    return [(str(path), text_of(path)) for path in inside]


def _print_table(report: Report) -> None:
    console = table_console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column("where", no_wrap=True, style="dim")
    table.add_column("what", overflow="fold")  # the only wide one, so that 80 columns do
    for error in report.errors:
        table.add_row(escape(f"{error.file}:{error.line}"), f"[red]error[/] {escape(error.message)}")
    for judged in report.judged:
        for where, what in _rows(judged):
            table.add_row(escape(where), what)
    console.print(table, highlight=False)
    for note in report.notes:
        console.print(f"[dim]{escape(str(note))}[/]", highlight=False)
    console.print(_summary(report), highlight=False)


def _rows(judged: Judged) -> Iterator[tuple[str, str]]:
    """Where and what: the object's own row, then one for each problem and warning."""
    verdict, manifest = judged.verdict, judged.manifest
    word = "[green]accepted[/]" if verdict.accepted else "[red]not accepted[/]"
    result = f", {judged.result.lower()}" if judged.result else ""
    yield manifest.where(), f"[bold]{escape(f'{verdict.kind} {verdict.name}')}[/] {word}{result}"
    for problem in verdict.problems:
        yield manifest.where(problem.path), f"  [red]{problem.reason}[/] {escape(problem.message)}"
    for warning in verdict.warnings:
        yield manifest.where(warning.path), f"  [yellow]warning {warning.reason}[/] {escape(warning.message)}"


def _summary(report: Report) -> str:
    refused = sum(not judged.verdict.accepted for judged in report.judged)
    warnings = sum(len(judged.verdict.warnings) for judged in report.judged)
    counts: Mapping[str, int] = {
        "accepted": len(report.judged) - refused,
        "not accepted": refused,
        "warnings": warnings,
        "errors": len(report.errors),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items())
