"""`tinyfuse operators` is complete, up to date, and lists only what tests cover."""

from __future__ import annotations

import case_counts
from click.testing import CliRunner

from tinyfuse.cli.main import main
from tinyfuse.ops import FAMILIES
from tinyfuse.report.operators import TESTED_CASES, operators_json

_REGENERATE = "run: python tests/support/case_counts.py"


def _shown(*arguments: str):
    return CliRunner().invoke(main, ["operators", *arguments])


def test_counts_are_those_of_the_tables() -> None:
    assert TESTED_CASES.read_text() == case_counts.counts_text(), _REGENERATE


def test_every_operator_of_a_file_is_listed_with_tested_cases_everywhere() -> None:
    listed = {o["kind"]: o for o in operators_json()["operators"]}
    assert set(listed) == {kind for kind, family in FAMILIES.items() if family.in_files}
    for kind, operator in listed.items():
        # the reader takes these two out of the graph, by rules of its own
        read = kind in ("VAR_HANDLE", "CALL_ONCE")
        folded, counts = FAMILIES[kind].folded, operator["tested_cases"]
        assert operator["rules"] or read, kind
        assert bool(operator["kernels"]) != (read or folded), kind
        if FAMILIES[kind].runs_here:
            assert all(counts[place] > 0 for place in (list(counts)[:1] if folded else counts)), kind


def test_summaries_are_one_line() -> None:
    for family in FAMILIES.values():
        assert 0 < len(family.summary) <= 100 and "\n" not in family.summary, family.kind


def test_a_kind_is_shown_with_its_rules() -> None:
    text = _shown("add").stdout
    assert (
        "ADD: a + b" in text
        and "inputs and output have the same dtype, one of int8" in text
        and "tinyfuse_add_s8" in text
    )
    assert "ADD" in _shown().stdout and "RELU" in _shown().stdout


def test_an_unknown_kind_is_refused() -> None:
    result = _shown("ADD", "NONSENSE")
    assert result.exit_code == 2 and "NONSENSE" in result.output
