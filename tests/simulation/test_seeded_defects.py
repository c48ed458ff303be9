"""Each seeded defect is caught by the seeds of CI: a check that catches nothing would go unnoticed otherwise."""

import importlib.util
from pathlib import Path

import pytest

from turnout_cli.simulating.seeds import run_seed


def _defects():
    path = Path(__file__).with_name("defects.py")
    spec = importlib.util.spec_from_file_location("seeded_defects", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DEFECTS


@pytest.mark.parametrize("defect", _defects(), ids=lambda defect: defect.what)
def test_a_seed_catches_it(defect):
    with defect.applied():
        caught = next((result for seed in range(1, 121) if (result := run_seed(seed, largest=20)).error), None)
    assert caught is not None
    assert "Broken" in caught.error or "Error" in caught.error
