"""Each seeded defect is caught by the seeds of CI: a check that catches nothing would go unnoticed otherwise."""

import importlib.util
from pathlib import Path

import pytest

from turnout_cli.simulating.seeds import FIXED, run_seed

WEAK = ("without a moment passing", "no end at", "is due again")
"""What says only that something goes round in circles, or never ends: no reason to trust a check."""


def _defects():
    path = Path(__file__).with_name("defects.py")
    spec = importlib.util.spec_from_file_location("seeded_defects", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DEFECTS


def _by_a_seed(defect):
    first = [case for case in FIXED if case[:2] == defect.caught_by]
    for kind, seed, largest in (*first, *FIXED):
        result = run_seed(seed, largest=largest, kind=kind)
        if result.error:
            return result
    return None


@pytest.mark.parametrize("defect", _defects(), ids=lambda defect: defect.what)
def test_a_seed_catches_it_by_what_must_always_hold(defect):
    with defect.applied():
        caught = _by_a_seed(defect)
    assert caught is not None
    assert caught.error.startswith("Broken: ")
    assert not any(weak in caught.error for weak in WEAK), caught.error


def test_all_defects_differ():
    defects = _defects()
    assert len(defects) >= 20
    assert len({defect.what for defect in defects}) == len(defects)
