"""`helm lint --strict` has nothing to say, and helm 3 and helm 4 make the same of the chart."""

import json

import yaml


def test_it_has_no_lint(helm, chart, values):
    helm("lint", "--strict", str(chart), "-f", "-", stdin=json.dumps(values))


def test_both_helms_render_the_same(helm, helm4, render, values):
    def objects(text: str) -> list[str]:
        return sorted(json.dumps(manifest, sort_keys=True) for manifest in yaml.safe_load_all(text) if manifest)

    assert objects(render(helm, values)) == objects(render(helm4, values))
