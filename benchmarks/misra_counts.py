"""Counts violations of MISRA C:2012 by rule in modules of examples/models.

It writes the counts into docs/reference/tested-tools.md.

    python benchmarks/misra_counts.py             counts today's violations with cppcheck's addon
    python benchmarks/misra_counts.py --before    also those of the commit before rules were looked at (BEFORE)

tests/product/test_misra.py compares the page with misra_counts.json, and that with a count of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT)]

from tinyfuse.evidence.deviations import load_deviations  # noqa: E402

RESULTS, PAGE = HERE / "misra_counts.json", ROOT / "docs" / "reference" / "tested-tools.md"
#: its modules are made of the same files with the same options
BEFORE = "48bf4402"
MODELS = ("ad", "kws")
_COMMAND = (
    "cppcheck", "--addon=misra", "--enable=style", "--std=c99", "--platform=unix32", "-D__ARM_FEATURE_DSP=1", "-I.",
)  # fmt: skip
_VIOLATION = re.compile(r"\[misra-c2012-([\d.]+)\]$", re.M)
_BEGIN, _END = "<!-- misra_counts -->\n", "<!-- end of misra_counts -->\n"
#: rules that BEFORE broke and no module breaks today have no entry in misra_deviations.toml
_CATEGORIES = {"10.7": "required", "11.3": "required", "15.7": "required", "14.4": "required"}

Counts = dict[str, int]


def count_rules(module: Path, source: str) -> Counter[str]:
    """Number of violations by rule in a module's folder."""
    done = subprocess.run([*_COMMAND, source], cwd=module, capture_output=True, text=True, check=True)
    return Counter(_VIOLATION.findall(done.stderr))


def count_models(tinyfuse: Path) -> Counts:
    """Violations by rule in the modules that the checkout `tinyfuse` generates for Cortex-M4."""
    found = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for model in MODELS:
            module = Path(folder, model)
            words = ["gen", ROOT / "examples" / "models" / f"{model}.tflite", "--target", "cortex-m4", "--name", "net"]
            environment = {**os.environ, "PYTHONPATH": str(tinyfuse)}
            subprocess.run([sys.executable, "-m", "tinyfuse", *words, "-o", module], check=True, env=environment,
                           stdout=subprocess.DEVNULL, cwd=folder)  # fmt: skip
            found += count_rules(module, "net.c")
    return dict(sorted(found.items(), key=lambda entry: _order(entry[0])))


def count_before() -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder, "checkout")
        subprocess.run(["git", "worktree", "add", "-q", "--detach", checkout, BEFORE], cwd=ROOT, check=True)
        try:
            return count_models(checkout)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", checkout], cwd=ROOT, check=True)


def _order(rule: str) -> tuple[int, ...]:
    return tuple(map(int, rule.split(".")))


def counts_table(results: dict[str, Counts]) -> str:
    """Markdown table of both counts, with the category of each rule."""
    before, now = results["before"], results["now"]
    categories = _CATEGORIES | {each.rule: each.category for each in load_deviations()}
    rows = [
        f"| {rule} | {categories[rule]} | {before.get(rule, 0):,} | {now.get(rule, 0):,} |"
        for rule in sorted({*before, *now}, key=_order)
    ]
    total = f"| all | | {sum(before.values()):,} | {sum(now.values()):,} |"
    return "\n".join(["| rule | category | before | now |", "|---|---|---|---|", *rows, total, ""])


def filled_page(page: str, results: dict[str, Counts]) -> str:
    """Text of the page with the table between its marks."""
    begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
    return f"{page[:begin]}\n{counts_table(results)}\n{page[end:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", action="store_true", help="count the violations of the earlier commit, too")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if given.before:
        results["before"] = count_before()
    results["now"] = count_models(ROOT)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(filled_page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
