"""The layout of tinyfuse/: imports between packages, and between files, make no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: files in tinyfuse/ itself, each a package of its own here
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "tinyfuse").rglob("*.py"))
}

#: what the operators' meaning may know
BELOW_OPS = {"ir", "errors", "once"}


def imported(file: Path) -> Iterator[str]:
    """Modules of tinyfuse that a file imports, also inside functions; not those that only type checkers load."""
    waiting: list[ast.AST] = [ast.parse(file.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        waiting += ast.iter_child_nodes(node)


def package(module: str) -> str:
    """The package below tinyfuse that contains a module; tinyfuse/__init__.py (the version) counts as one."""
    return (*module.split("."), "")[1]


@cache
def file_arrows() -> dict[str, set[str]]:
    return {module: set(imported(file)) - {module} for module, file in MODULES.items()}


def package_arrows() -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = {package(module): set() for module in MODULES}
    for module, others in file_arrows().items():
        arrows[package(module)] |= {package(other) for other in others} - {package(module)}
    return arrows


def test_files_import_each_other_one_way() -> None:
    TopologicalSorter(file_arrows()).prepare()  # CycleError names the circle


def test_packages_import_each_other_one_way() -> None:
    TopologicalSorter(package_arrows()).prepare()


def test_operators_know_no_kernel() -> None:
    assert package_arrows()["ops"] <= BELOW_OPS


def test_only_command_line_and_api_depend_on_all_others() -> None:
    arrows = package_arrows()
    most = max((name for name in arrows if name not in ("cli", "api", "__main__")), key=lambda name: len(arrows[name]))
    assert "emit" not in arrows["compiler"] and "verify" not in arrows["compiler"]
    assert len(arrows[most]) < len(arrows) / 2, f"{most} depends on {sorted(arrows[most])}"


def test_a_circle_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "late.py"
    file.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tinyfuse.emit import emit\n"
        "def f():\n    from tinyfuse.plan.check import player\n    import tinyfuse.errors\n"
    )
    assert set(imported(file)) == {"tinyfuse.plan.check.player", "tinyfuse.errors"}
