"""The table of plain scalars is what kubectl says: the manifests reader is held against the same table."""

import json


def test_kubectl_makes_the_same_of_each_scalar(crds, scalars):
    listed = "".join(f"\n  - {text}" for text in scalars)
    text = f"apiVersion: turnout.dev/v1alpha1\nkind: ModelPool\nmetadata: {{name: a}}\nspec:\n  values:{listed}\n"

    shown = crds.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text).stdout

    values = json.loads(shown)["spec"]["values"]
    assert dict(zip(scalars, values, strict=True)) == scalars
