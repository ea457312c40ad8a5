"""`gen --format`: each output form is what its tool takes, builds under its own layout, and is exact."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import form_rules
import kconfiglib
import pytest
from click.testing import CliRunner
from cross_compilers import cross_compiler
from form_builds import BUILDS, RIGHT, done, zephyr
from sliding_models import wake_word
from stream_models import STREAM_MODELS
from test_generated_code import separable

import tinyfuse
from tinyfuse.cli.main import main
from tinyfuse.emit.forms import FORMS, make_delivery
from tinyfuse.emit.forms.spdx import with_licence
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.errors import UsageError
from tinyfuse.targets import load_target

BIN = Path(sys.executable).parent
#: forms that fit into one folder, in two: ESP-IDF's CMakeLists.txt is another one than CMake's
TOGETHER = tuple(name for name in FORMS if name not in ("esp-idf", "single-file"))
#: what no comment can stand in
WITHOUT_COMMENTS = {".json", ".txt", ".pack", ""}


@pytest.fixture(scope="module")
def net() -> tinyfuse.Module:
    return tinyfuse.compile(separable(), "generic32", name="net")


@pytest.fixture(scope="module")
def folders(net: tinyfuse.Module, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each form alone, one for the mixture `TOGETHER`, and one with the single file."""
    base = tmp_path_factory.mktemp("forms")
    wanted = {name: (name,) for name in FORMS} | {
        "together": TOGETHER,
        "in one file": (*TOGETHER[1:], "single-file", "esp-idf"),
    }
    for folder, formats in wanted.items():
        write_folder(base / folder / "net", net.files(formats=formats, selftest=True), force=False)
    return {folder: base / folder / "net" for folder in wanted}


# --- what the tools say ------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [None, "together", "in one file"], ids=["alone", "together", "in one file"])
@pytest.mark.parametrize("form", ["zephyr", "arduino", "csolution", "cmsis-pack"])
def test_the_documented_rules_hold(folders: dict[str, Path], form: str, folder: str | None) -> None:
    assert getattr(form_rules, form.replace("-", "_"))(folders[folder or form]) == []


def test_the_rules_find_what_is_wrong(folders: dict[str, Path], tmp_path: Path) -> None:
    breakages = {
        "zephyr": ("zephyr/Kconfig", "TINYFUSE_NET", "NET"),
        "arduino": ("library.properties", "category=Data Processing", "category=Networks"),
        "csolution": ("net.clayer.yml", "  groups:", "  group:\n  groups:"),
        "cmsis-pack": ("tinyfuse.net.pdsc", "net_weights.c", "net_weight.c"),
    }
    for form, (file, old, new) in breakages.items():
        broken = tmp_path / form
        shutil.copytree(folders[form], broken)
        text = (broken / file).read_text()
        (broken / file).write_text(text.replace(old, new))
        assert text != (broken / file).read_text()
        assert getattr(form_rules, form.replace("-", "_"))(broken), form


@pytest.mark.parametrize("folder", ["platformio", "in one file"])
def test_platformio_packs_it(folders: dict[str, Path], folder: str, tmp_path: Path) -> None:
    """PlatformIO's own tool reads library.json, checks it against its schema, and packs the files."""
    pytest.importorskip("platformio")
    quiet = {"PLATFORMIO_CORE_DIR": str(tmp_path / "core"), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no"}
    done([BIN / "pio", "pkg", "pack", "-o", tmp_path / "net.tar.gz", folders[folder]], tmp_path, **quiet)
    with tarfile.open(tmp_path / "net.tar.gz") as archive:
        names = set(archive.getnames())
    assert {"library.json", "LICENSE", "README.md"} <= names and any(name.endswith("net.c") for name in names)
    told = json.loads((folders[folder] / "library.json").read_text())
    # it adds the manifest of an Arduino library by itself
    assert set(told["export"]["include"]) == names - {"library.properties"}


def test_esp_idfs_component_manager_loads_it(folders: dict[str, Path]) -> None:
    manager = pytest.importorskip("idf_component_tools.manager").ManifestManager(str(folders["esp-idf"]), "net")
    loaded = manager.load()
    assert str(loaded.version) == "1.0.0" and loaded.dependencies == {"idf": ">=5.0"}


# --- builds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_form_builds_as_its_own_system_does_and_runs(folders: dict[str, Path], form: str, tmp_path: Path) -> None:
    assert BUILDS[form](folders[form], tmp_path / "work") == RIGHT


@pytest.mark.campaign
@pytest.mark.parametrize("folder", ["together", "in one file"])
@pytest.mark.parametrize("form", FORMS)
def test_each_form_builds_beside_others(folders: dict[str, Path], folder: str, form: str, tmp_path: Path) -> None:
    if form in {"together": ("esp-idf", "single-file"), "in one file": ("cmake", "single-file")}[folder]:
        pytest.skip(f"{form} doesn't stand in that folder")
    assert BUILDS[form](folders[folder], tmp_path / "work") == RIGHT


@pytest.mark.parametrize(
    "model, settings", [(STREAM_MODELS["svdf of float32"], {}), (separable(), {"feed_rows": True})],
    ids=["state", "fed by rows"],
)  # fmt: skip
def test_programs_of_every_api(model: bytes, settings: dict[str, bool], tmp_path: Path) -> None:
    """Compiles Zephyr's and Arduino's programs for modules with other interfaces, on another core."""
    module = tinyfuse.compile(model, "cortex-m4", name="net", kernels="tinyfuse", **settings)
    folder = tmp_path / "net"
    write_folder(folder, module.files(formats=("zephyr", "arduino")), force=False)
    assert BUILDS["arduino"](folder, tmp_path / "arduino") == RIGHT
    config = folder / "zephyr/samples/inference/prj.conf"
    config.write_text(config.read_text() + "CONFIG_TINYFUSE_NET_ANY_CPU=y\n")
    assert zephyr(folder, tmp_path / "sample", "zephyr/samples/inference") == f"net: {RIGHT}"


@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m4"])
def test_arduinos_c_carries_its_own_optimization_and_fits_any_core(core: str, tmp_path: Path) -> None:
    """A board of another core compiles it; -Os and -O3 don't give what they give where the code doesn't ask."""
    module = tinyfuse.compile(separable(), "cortex-m4", name="net", kernels="tinyfuse")
    write_folder(tmp_path / "net", module.files(formats=("arduino",)), force=False)
    source = tmp_path / "net/src/net/net.c"
    command = [*cross_compiler("gcc", load_target(core)), "-c", source, "-Inet/src", "-o", "net.o"]
    sizes = {}
    for asks in (True, False):
        for level in ("-Os", "-O3"):
            done([*command, level], tmp_path)
            sizes[asks, level] = int(done(["arm-none-eabi-size", "net.o"], tmp_path).split("\n")[1].split()[0])
        source.write_text(source.read_text().replace('#pragma GCC optimize("O2")', ""))
    assert sizes[True, "-Os"] > sizes[False, "-Os"] and sizes[True, "-O3"] < sizes[False, "-O3"]


# --- what every form carries -------------------------------------------------------------------


def test_every_file_names_its_licence_and_the_folder_its_origin(net: tinyfuse.Module, folders: dict[str, Path]) -> None:
    for folder in folders.values():
        for path in (each for each in folder.rglob("*") if each.is_file()):
            text = path.read_bytes().decode("ascii", "strict" if path.suffix != ".pack" else "replace")
            licence = "Apache-2.0" if path.name.startswith("tinyfuse_") else "LicenseRef-model-owner"
            if path.suffix not in WITHOUT_COMMENTS or path.name in ("Makefile", "Kconfig", "CMakeLists.txt"):
                lines = text.splitlines()
                assert sum(f"SPDX-License-Identifier: {licence}" in line for line in lines[:2]) == 1, path
        for name in ("README.md", "LICENSE"):
            text = (folder / name).read_text()
            assert tinyfuse.__version__ in text and net.plan.graph.sha256 in text and "yours" in text, name
        listed = json.loads((folder / "manifest.json").read_text())["files"]
        assert set(listed) == {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {
            "manifest.json"
        }


def test_packs_are_the_same_bytes_each_time(net: tinyfuse.Module) -> None:
    one, two = (
        tinyfuse.compile(separable(), "generic32", name="net").files(formats=tuple(FORMS)[:8]) for _ in range(2)
    )
    assert one == two and any(name.endswith(".pack") for name in one)


def test_a_form_changes_no_c_but_its_licence(net: tinyfuse.Module) -> None:
    plain, formed = net.files(selftest=True), net.files(selftest=True, formats=("make", "csolution"))
    for name in plain.keys() - {"CMakeLists.txt", "manifest.json"}:
        assert formed[name].endswith(plain[name]), name
    assert not {"README.md", "LICENSE"} & plain.keys()


def test_an_spdx_line_stands_once() -> None:
    text = with_licence("a.pdsc", "<?xml version='1.0'?>\n<a/>\n", "MIT")
    assert text == "<?xml version='1.0'?>\n<!-- SPDX-License-Identifier: MIT -->\n<a/>\n"
    assert with_licence("a.pdsc", text, "BSD-3-Clause") == text
    assert with_licence("a.json", "{}", "MIT") == "{}"


def test_what_packages_say_is_what_was_given(net: tinyfuse.Module, tmp_path: Path) -> None:
    about = {"version": "2.10.3", "vendor": "Acme", "author": 'J\u00f6 "J" <j@a.example>', "url": "https://a.example/b?c=1&d=2",
             "license": "MIT OR Apache-2.0"}  # fmt: skip
    files = net.files(formats=tuple(name for name in FORMS if name != "cmake"), about=about)
    write_folder(tmp_path / "net", files, force=False)
    for rules in (form_rules.zephyr, form_rules.arduino, form_rules.csolution, form_rules.cmsis_pack):
        assert rules(tmp_path / "net") == []
    assert "Acme.net.2.10.3.pack" in files and b"author=J\xc3\xb6" in files["library.properties"]
    told = json.loads(files["library.json"])
    assert told["authors"] == [{"name": about["author"]}] and told["license"] == about["license"]
    assert b"SPDX-License-Identifier: (MIT OR Apache-2.0) AND Apache-2.0" in files["src/net/net.c"]
    assert b"https://a.example/b?c=1&amp;d=2" in files["Acme.net.pdsc"]


@pytest.fixture(scope="module")
def sliding(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders as in `folders`, for a model with a sliding window."""
    base, module = tmp_path_factory.mktemp("sliding"), tinyfuse.compile(wake_word(), "generic32", name="net", slide=1)
    mixtures = {"together": TOGETHER, "esp-idf": ("esp-idf",), "single-file": ("single-file",)}
    for folder, formats in mixtures.items():
        write_folder(base / folder / "net", module.files(formats=formats, selftest=True), force=False)
    return {form: base / (form if form in mixtures else "together") / "net" for form in FORMS}


@pytest.mark.parametrize("form", ["cmake", "zephyr", "arduino", "single-file"])
def test_a_window_that_slides(sliding: dict[str, Path], form: str, tmp_path: Path) -> None:
    """The programs of each form stream more than a window, and compare."""
    assert BUILDS[form](sliding[form], tmp_path / "work") == RIGHT


@pytest.mark.campaign
@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("cmake", "zephyr", "arduino", "single-file")])
def test_a_window_that_slides_in_other_forms(sliding: dict[str, Path], form: str, tmp_path: Path) -> None:
    assert BUILDS[form](sliding[form], tmp_path / "work") == RIGHT


def test_the_sample_of_a_window_that_slides(sliding: dict[str, Path], tmp_path: Path) -> None:
    """The sample runs steps until the window is full."""
    assert form_rules.zephyr(sliding["zephyr"]) == [] == form_rules.arduino(sliding["arduino"])
    assert zephyr(sliding["zephyr"], tmp_path / "sample", "zephyr/samples/inference") == f"net: {RIGHT}"


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("about", [
    {"version": "1.0"}, {"version": "1.0.0-beta\nname=x"}, {"vendor": "A B"}, {"vendor": "../x"}, {"author": "a\nb"},
    {"author": ""}, {"author": " a"}, {"url": "javascript:x"}, {"url": "https://a b"}, {"license": "MIT */"},
    {"licence": "MIT"},
], ids=str)  # fmt: skip
def test_what_no_format_could_hold_is_refused(about: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="--about "):
        make_delivery(("make",), about)


def gen(tmp_path: Path, *options: str, target: str = "cortex-m4") -> str:
    """The output of a `gen` that writes nothing."""
    (tmp_path / "net.tflite").write_bytes(separable())
    result = CliRunner().invoke(
        main, ["gen", str(tmp_path / "net.tflite"), "--target", target, "-o", str(tmp_path / "o"), *options]
    )
    assert result.exit_code == 2 and not (tmp_path / "o").exists(), result.output
    return result.output


def test_forms_that_need_one_file_are_refused_together(tmp_path: Path) -> None:
    said = gen(tmp_path, "--format", "esp-idf", "--format", "cmake")
    assert "--format cmake and --format esp-idf both make CMakeLists.txt" in said


def test_about_needs_a_form_and_a_value(tmp_path: Path) -> None:
    assert "--format" in gen(tmp_path, "--about", "version=1.0.0")
    assert "KEY=VALUE" in gen(tmp_path, "--about", "version", "--format", "make")
    assert "arduino" in gen(tmp_path, "--format", "nonsense")
    assert "cmsis-pack" in gen(tmp_path, "--format", "keil")


@pytest.mark.parametrize("form", FORMS)
def test_a_module_that_calls_cmsis_nn(form: str) -> None:
    """A form asks for the package, or compiles the bundle, or says that it can't."""
    module = tinyfuse.compile(separable(), "cortex-m4", name="net", kernels="cmsis-nn")
    way = FORMS[form].cmsis_nn
    if way in ("never", "bundle"):
        with pytest.raises(UsageError, match="--kernels tinyfuse"):
            module.files(formats=(form,))
        return
    files = module.files(formats=(form,))
    if way == "package":
        named = {"zephyr": "select CMSIS_NN", "cmsis-pack": 'name="CMSIS-NN"', "csolution": "ARM::CMSIS-NN@^7.0.0"}
        assert any(named[form].encode() in text for text in files.values())


@pytest.mark.parametrize("name", ["test", "all", "Install"])
def test_names_that_build_systems_have_themselves(name: str, tmp_path: Path) -> None:
    module = tinyfuse.compile(separable(), "generic32", name=name)
    files = module.files(formats=("cmake", "meson"))
    assert re.search(rf"add_library\({name}_model ".encode(), files["CMakeLists.txt"])
    assert f"static_library('{name}_model'".encode() in files["meson.build"]


# --- with schemas that are not ours ------------------------------------------------------------


@pytest.mark.parametrize("folder", ["cmsis-pack", "together"])
def test_the_official_schema_of_packs(folders: dict[str, Path], folder: str) -> None:
    schema = os.environ.get("PACK_XSD")
    if not schema or not shutil.which("xmllint"):
        pytest.skip("needs PACK_XSD, the path of Open-CMSIS-Pack's PACK.xsd, and xmllint")
    (description,) = folders[folder].glob("*.pdsc")
    done = subprocess.run(["xmllint", "--noout", "--schema", schema, description], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


_STAND_IN = """\
config CPU_HAS_FPU
	def_bool {fpu}
config FPU
	bool "FPU"
	depends on CPU_HAS_FPU
config ZTEST_NEW_API
	bool "new"
"""


def test_zephyr_turns_on_what_helium_needs(tmp_path: Path) -> None:
    """Zephyr's compiler flags have MVE only where FPU is on; the self-test's API was a choice in Zephyr 3."""
    module, other = (
        tinyfuse.compile(separable(), core, name="net", kernels="tinyfuse").files(formats=("zephyr",), selftest=True)
        for core in ("cortex-m55", "cortex-m4")
    )
    write_folder(tmp_path / "net", module, force=False)
    kconfig = tmp_path / "net" / "zephyr" / "Kconfig"
    for fpu, any_cpu, wanted in (("y", "n", "y"), ("y", "y", "n"), ("n", "n", "n")):
        whole = tmp_path / "Kconfig.zephyr"
        whole.write_text(_STAND_IN.format(fpu=fpu) + f'source "{kconfig}"\n')
        found = kconfiglib.Kconfig(str(whole), warn=False)
        found.syms["TINYFUSE_NET"].set_value("y")
        found.syms["TINYFUSE_NET_ANY_CPU"].set_value(any_cpu)
        assert found.syms["FPU"].str_value == wanted
    application = kconfig.parent / "tests" / "selftest" / "Kconfig"
    application.write_text(application.read_text().replace('"Kconfig.zephyr"', f'"{whole}"'))
    assert kconfiglib.Kconfig(str(application), warn=False).syms["ZTEST_NEW_API"].str_value == "y"
    assert any("CONFIG_FPU=y" in path.read_text() for path in (tmp_path / "net").rglob("net.c"))
    assert b"imply FPU" not in other["zephyr/Kconfig"]
