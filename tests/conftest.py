"""Options of the test runs, and what they share."""

import gc
import threading
import time

import once_per_session
import pytest
from compile_cache import cached_in
from hypothesis import settings

from tinyfuse.rewrite import OBSERVERS
from tinyfuse.rewrite.invariants import check_pass
from tinyfuse.verify.emulation.compilers import Compiler

# The same networks in every run of CI; a campaign draws new ones.
settings.register_profile("repeatable", derandomize=True)


def pytest_addoption(parser):
    parser.addoption("--campaign", action="store_true", help="also run what takes longer than CI allows")
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew, to be read in review")


def pytest_configure(config):
    if not config.getoption("--campaign"):
        settings.load_profile("repeatable")
    OBSERVERS.append(lambda one_pass, before, after: check_pass(one_pass.__name__, before, after))


def pytest_collection_modifyitems(config, items):
    if config.getoption("--campaign"):
        return
    for item in items:
        if item.get_closest_marker("campaign"):
            item.add_marker(pytest.mark.skip(reason="a campaign: run with --campaign"))


class _Collecting:
    """Prints a line every 15 seconds until the workers have collected their tests; the terminal shows nothing
    meanwhile."""

    def __init__(self, reporter):
        self._reporter, self._done, self._began = reporter, threading.Event(), time.monotonic()
        threading.Thread(target=self._tell, daemon=True).start()

    def _tell(self):
        while not self._done.wait(15):
            self._reporter.write_line(f"collecting tests for {time.monotonic() - self._began:.0f} s")

    def pytest_runtest_logstart(self):
        self._done.set()

    def pytest_unconfigure(self):
        self._done.set()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(_Collecting(reporter))


def pytest_collection_finish():
    """Freezes all objects, thousands of tests among them: garbage collection does not visit them again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.fixture(scope="session", autouse=True)
def _made_once_a_run(tmp_path_factory, request):
    """Shares what is slow to make between workers: compiled firmware files and the plans of compiler_modules.py."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    with pytest.MonkeyPatch.context() as patch, once_per_session.kept_in(shared / "made"):
        patch.setattr(Compiler, "run", cached_in(shared / "compiled", Compiler.run))
        yield
