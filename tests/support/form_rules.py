"""Rules of formats whose tools can't be installed, written from their documentation; functions return sentences about
violations.

Zephyr's module.yml, its Kconfig and twister's files; Arduino's library specification (revision 2.2); CMSIS-Toolbox's
layers; Open-CMSIS-Pack's .pdsc and .pack. A function returns sentences, none where all is well.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import kconfiglib
import yaml

_ARDUINO_REQUIRED = "name version author maintainer sentence paragraph category url architectures".split()
_ARDUINO_OPTIONAL = "depends includes dot_a_linkage precompiled ldflags".split()
_ARDUINO_CATEGORIES = (
    "Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
    "Data Processing", "Other",
)  # fmt: skip
_SEMVER = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){0,2}")

_LAYER_KEYS = set(
    """type description language-C language-CPP optimize link-time-optimize debug warnings define define-asm undefine
    add-path add-path-asm del-path misc device board compiler generators packs for-device for-board connections
    processor linker groups components""".split()
)
_GROUP_KEYS = set(
    """group for-context not-for-context for-compiler language-C language-CPP optimize link-time-optimize debug warnings
    define define-asm undefine add-path add-path-asm del-path misc groups files""".split()
)
_FILE_CATEGORIES = set(
    """doc header include includeAsm library object source sourceC sourceCpp sourceAsm linkerScript utility image other
    preIncludeGlobal preIncludeLocal""".split()
)


def zephyr(folder: Path) -> list[str]:
    """Checks module.yml (scripts/zephyr_module.py), Kconfig with the variables of a build, samples and tests
    (twister)."""
    wrong = []
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    wrong += [f"module.yml: {key}" for key in module.keys() - {"name", "build", "tests", "samples"}]
    build = module["build"]
    wrong += [f"module.yml: build.{key}" for key in build.keys() - {"cmake", "kconfig", "depends"}]
    if not (folder / build["cmake"] / "CMakeLists.txt").is_file() or not (folder / build["kconfig"]).is_file():
        wrong.append("module.yml names what is not there")
    symbols = {each.name for each in kconfiglib.Kconfig(str(folder / build["kconfig"]), warn=False).unique_defined_syms}
    wrong += [f"Kconfig: {name} is not our own" for name in symbols if not name.startswith("TINYFUSE_")]
    for kind, file in (("samples", "sample.yaml"), ("tests", "testcase.yaml")):
        for root in module.get(kind, []):
            found = list((folder / root).rglob(file))
            wrong += [] if found else [f"module.yml: no {file} below {root}"]
            for each in found:
                wrong += _application(each, symbols)
    return wrong


def _application(description: Path, symbols: set[str]) -> list[str]:
    wrong, told = [], yaml.safe_load(description.read_text())
    wrong += [f"{description.name}: {key}" for key in told.keys() - {"sample", "common", "tests"}]
    for name, scenario in told["tests"].items():
        if not re.fullmatch(r"\w+(\.\w+)+", name):  # twister wants a section and a name
            wrong.append(f"{description.name}: scenario {name}")
        if not set(scenario["integration_platforms"]) <= set(scenario["platform_allow"]):
            wrong.append(f"{description.name}: {name} is integrated on a board that it doesn't allow")
    texts = [(description.parent / "prj.conf").read_text(), description.read_text()]
    named = set(re.findall(r"CONFIG_(TINYFUSE_\w+)", "".join(texts)))
    wrong += [f"{description.parent.name}: CONFIG_{name} is nowhere defined" for name in named - symbols]
    for needed in ("CMakeLists.txt", "src/main.c"):
        wrong += [] if (description.parent / needed).is_file() else [f"{description.parent.name} lacks {needed}"]
    return wrong


def arduino(folder: Path) -> list[str]:
    """Checks library.properties and the folders of files."""
    lines = (folder / "library.properties").read_text().splitlines()
    fields = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    wrong = [f"{key} is missing" for key in _ARDUINO_REQUIRED if not fields.get(key)]
    wrong += [f"{key} is unknown" for key in fields.keys() - {*_ARDUINO_REQUIRED, *_ARDUINO_OPTIONAL}]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}", fields["name"]) or fields["name"].lower().startswith(
        "arduino"
    ):
        wrong.append(f"name {fields['name']}")
    if not _SEMVER.fullmatch(fields["version"]):
        wrong.append(f"version {fields['version']}")
    if fields["category"] not in _ARDUINO_CATEGORIES:
        wrong.append(f"category {fields['category']}")
    offered = [path.name for path in (folder / "src").glob("*.h")]
    if offered != [fields["includes"]]:
        wrong.append(f"sketches are offered {offered}")
    for sketch in (folder / "examples").rglob("*.ino"):
        wrong += [] if sketch.stem == sketch.parent.name else [f"{sketch.name} lies in {sketch.parent.name}"]
    return wrong


def csolution(folder: Path) -> list[str]:
    """Checks the layer's keys, of which none may be unknown, and its files."""
    (file,) = folder.glob("*.clayer.yml")
    told = yaml.safe_load(file.read_text())
    layer = told["layer"]
    wrong = [f"key {key}" for key in told.keys() - {"layer"} | layer.keys() - _LAYER_KEYS]
    wrong += [f"component {each}" for each in layer.get("components", []) if set(each) != {"component"}]
    for group in layer["groups"]:
        wrong += [f"key {key} of a group" for key in group.keys() - _GROUP_KEYS]
        wrong += [f"no file {each['file']}" for each in group["files"] if not (folder / each["file"]).is_file()]
    return wrong + [f"no folder {path}" for path in layer["add-path"] if not (folder / path).is_dir()]


def cmsis_pack(folder: Path) -> list[str]:
    """Checks the .pdsc's elements, and that the .pack holds it and all files that it names."""
    (description,) = folder.glob("*.pdsc")
    (pack,) = folder.glob("*.pack")
    root = ElementTree.parse(description).getroot()
    wrong = [f"no <{each}>" for each in ("name", "vendor", "description", "url", "releases") if root.find(each) is None]
    vendor, name = root.findtext("vendor"), root.findtext("name")
    version = root.find("releases")[0].get("version")
    if description.name != f"{vendor}.{name}.pdsc" or pack.name != f"{vendor}.{name}.{version}.pack":
        wrong.append("file names")
    conditions = {each.get("id") for each in root.iter("condition")}
    wrong += [f"condition {used}" for used in _conditions(root) - conditions]
    with zipfile.ZipFile(pack) as archive:
        held = set(archive.namelist())
        wrong += [f"{each} in the pack" for each in held if archive.read(each) != (folder / each).read_bytes()]
    if description.name not in held:
        wrong.append("the pack has no description at its root")
    named = [root.findtext("license"), *(each.get("name") for each in root.iter("file"))]
    wrong += [f"the pack lacks {each}" for each in named if not each.endswith("/") and each not in held]
    return wrong + [
        f"category {each.get('category')}" for each in root.iter("file") if each.get("category") not in _FILE_CATEGORIES
    ]


def _conditions(root: ElementTree.Element) -> set[str]:
    """Conditions that components and other conditions name."""
    return {each.get("condition") for each in root.iter() if each.get("condition") is not None}
