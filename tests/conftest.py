"""Options of the test runs."""

import pytest
from hypothesis import settings

# The same networks in every run of CI; a campaign draws new ones.
settings.register_profile("repeatable", derandomize=True)


def pytest_addoption(parser):
    parser.addoption("--campaign", action="store_true", help="also run what takes longer than CI allows")


def pytest_configure(config):
    if not config.getoption("--campaign"):
        settings.load_profile("repeatable")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--campaign"):
        return
    for item in items:
        if item.get_closest_marker("campaign"):
            item.add_marker(pytest.mark.skip(reason="a campaign: run with --campaign"))
