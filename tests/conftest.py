"""What holds for every test."""

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# No deadline: how long an example takes says nothing on a machine that others use. The blob of a failing example is
# printed, and becomes an @reproduce_failure or @example that stays.
settings.register_profile("turnout", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("turnout")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test that skips because a component is missing has failed: CI installs everything.

    What lies beside the repository (`../shared`) is no component: the repository needs nothing from there.
    """
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and "../shared" not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
