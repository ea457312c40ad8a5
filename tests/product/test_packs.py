"""CMSIS-Packs from an index on this machine: `cmsis-nn install`, `cmsis-nn where`, `devices`, `--device`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from pack_server import PackServer, device, family
from random_graphs import Sketch
from test_cmsis_nn import make_tree

from tinyfuse.cli.main import main
from tinyfuse.errors import UsageError
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn
from tinyfuse.toolchain.devices import find_device

manager = pytest.importorskip("cmsis_pack_manager", reason="needs the PyPI package cmsis-pack-manager")

FLASH = ("IROM1", 0x08000000, 0x200000)
#: two blocks that touch, and one elsewhere
RAMS = [("IRAM1", 0x20000000, 0x30000), ("IRAM3", 0x20030000, 0x70000), ("IRAM2", 0x10000000, 0x10000)]


def devices() -> str:
    memories = [FLASH, *RAMS]

    def one(name: str, core: str, *more: tuple[str, str]) -> str:
        return device(name, [{"Dcore": core, **dict(more)}], memories)

    several = [
        device("ACM4R5ZI", [{"Dfpu": "SP_FPU"}], memories, ("ACM4R5ZITx", "ACM4R5ZIPx")),
        device("ACM4R5ZG", [{"Dfpu": "SP_FPU"}], [("IROM1", 0x08000000, 0x100000), *RAMS]),
    ]
    rest = [
        one("ACM0", "Cortex-M0"),
        one("ACM3", "Cortex-M3"),
        one("ACM4S", "Cortex-M4", ("Dfpu", "NO_FPU")),
        one("ACM7S", "Cortex-M7", ("Dfpu", "SP_FPU")),
        one("ACM33", "Cortex-M33", ("Dfpu", "SP_FPU"), ("Ddsp", "DSP")),
        one("ACM33N", "Cortex-M33", ("Ddsp", "NO_DSP")),
        one("ACM55", "Cortex-M55", ("Dfpu", "DP_FPU"), ("Dmve", "FP_MVE")),
        one("ACM55I", "Cortex-M55", ("Dmve", "MVE")),
        one("ACM55N", "Cortex-M55", ("Dfpu", "DP_FPU"), ("Dmve", "NO_MVE")),
        one("ACM85", "Cortex-M85", ("Dfpu", "DP_FPU"), ("Dmve", "FP_MVE")),
        one("ACA7", "Cortex-A7"),
        one("STM32L4R5ZITx", "Cortex-M4", ("Dfpu", "SP_FPU")),
        device("ACD7", [{"Dcore": "Cortex-M7", "Pname": "CM7", "Dfpu": "DP_FPU"},
                        {"Dcore": "Cortex-M4", "Pname": "CM4", "Dfpu": "SP_FPU"}], memories),
    ]  # fmt: skip
    first = family("ACM4", several, {"Dcore": "Cortex-M4"})
    return first.replace("</devices>", "") + family("ACM", rest).replace("<devices>", "")


def pack_of(folder: Path, **tree) -> dict[str, bytes]:
    root = make_tree(folder, **tree)
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.fixture
def server(tmp_path: Path, monkeypatch):
    """A server of an index with devices and CMSIS-NN 4.0.0, 6.0.0 and 7.0.0; the cache is empty."""
    for name in ("CMSIS_NN_PATH", "CMSIS_PATH", "CMSIS_PACK_ROOT", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr("tinyfuse.toolchain.cmsis_nn.find._bakenn", lambda: None)
    # it looks every half of a second whether a download ended
    monkeypatch.setattr(manager, "time", SimpleNamespace(sleep=lambda seconds: time.sleep(seconds / 50)))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.chdir(tmp_path)
    found = PackServer(tmp_path / "server")
    monkeypatch.setenv("TINYFUSE_PACK_INDEX", found.index)
    found.add("Acme", "Boards_DFP", ["1.2.0"], devices())
    six = "arm_cmsis_nn_status arm_add(const int8_t *a);\nvoid arm_vector_sum_s8(const int32_t lhs_offset);\n"
    four = "arm_cmsis_nn_status arm_add(const int8_t *a);\n"
    found.add("ARM", "CMSIS-NN", ["7.0.0", "6.0.0", "4.0.0"], packs={
        "7.0.0": pack_of(tmp_path / "7"),
        "6.0.0": pack_of(tmp_path / "6", declared=six),
        "4.0.0": pack_of(tmp_path / "4", declared=four, include='#include "cmsis_compiler.h"\n'),
    })  # fmt: skip
    found.add("ARM", "CMSIS", ["6.1.0"], packs={"6.1.0": {"CMSIS/Core/Include/cmsis_compiler.h": b""}})
    yield found
    found.close()


def tinyfuse_(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


# --- CMSIS-NN --------------------------------------------------------------------------------


def test_install_downloads_once_and_is_found_by_everything(server) -> None:
    missing = tinyfuse_("cmsis-nn", "where")
    assert missing.exit_code == 3 and "tinyfuse cmsis-nn install" in missing.stderr
    done = tinyfuse_("cmsis-nn", "install")
    assert done.exit_code == 0 and done.stdout.startswith("CMSIS-NN 7.0 at "), done.output
    assert find_cmsis_nn(None).version == (7, 0)
    where = json.loads(tinyfuse_("cmsis-nn", "where", "--json").stdout)
    assert (where["version"], where["found_by"], where["core_include"]) == ("7.0", "CMSIS-Pack", None)
    assert "arm_convolve_wrapper_s8" in where["lacks"] and "arm_add" not in where["lacks"]
    asked = list(server.asked)
    assert asked.count("/ARM.CMSIS-NN.7.0.0.pack") == 1 and not any("6.0.0" in path for path in asked)
    assert tinyfuse_("cmsis-nn", "install", "--version", "7.0").exit_code == 0
    assert server.asked == asked  # neither the index nor the pack again


def test_other_versions_beside_each_other(server) -> None:
    for version in ("7.0", "6.0.0"):
        assert tinyfuse_("cmsis-nn", "install", "--version", version).exit_code == 0
    assert find_cmsis_nn(None).version == (7, 0)
    assert find_cmsis_nn(None, (6, 0)).version == (6, 0)
    assert find_cmsis_nn(None, (5, 0)).version == (7, 0)  # none of that version: what there is


def test_version_4_brings_the_core_headers_it_needs(server) -> None:
    data = json.loads(tinyfuse_("cmsis-nn", "install", "--version", "4.0", "--json").stdout)
    assert data["version"] == "4.0" and data["core_include"].endswith("CMSIS/Core/Include")


def test_a_new_release_is_found_after_the_old_one_was_installed(server, tmp_path) -> None:
    assert tinyfuse_("cmsis-nn", "install").exit_code == 0
    server.add("ARM", "CMSIS-NN", ["7.1.0", "7.0.0"], packs={"7.1.0": pack_of(tmp_path / "71")})
    assert tinyfuse_("cmsis-nn", "install", "--version", "7.1").exit_code == 0
    assert "/ARM.CMSIS-NN.7.1.0.pack" in server.asked


@pytest.mark.parametrize(
    "prepare, arguments, code, message",
    [
        (lambda s: None, ["--version", "5.0"], 2, "has no version 5.0; its versions: 7.0.0, 6.0.0, 4.0.0"),
        (lambda s: None, ["--version", "../../x"], 2, "has no version ../../x"),
        (lambda s: (s.folder / "ARM.CMSIS-NN.7.0.0.pack").unlink(), [], 3, "CMSIS-NN 7.0.0 was not found: its server"),
        (lambda s: (s.folder / "ARM.CMSIS-NN.7.0.0.pack").write_bytes(b"no zip"), [], 2, "is not a CMSIS-Pack"),
        (lambda s: (s.folder / "ARM.CMSIS-NN.pdsc").unlink(), [], 3, "does not list it, or can't be reached"),
        (lambda s: (s.folder / "ARM.CMSIS-NN.pdsc").write_text("<package"), [], 2, "is not a description of a pack"),
        (lambda s: (s.folder / "index.pidx").write_text("no XML"), [], 3, "does not list it, or can't be reached"),
        (lambda s: s.close(), [], 3, "does not list it, or can't be reached"),
    ],
    ids=["version", "path", "no pack", "bad pack", "no description", "bad description", "bad index", "no server"],
)
def test_what_can_not_be_installed_is_said(server, prepare, arguments, code, message) -> None:
    prepare(server)
    result = tinyfuse_("cmsis-nn", "install", *arguments)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert message in result.stderr, result.stderr


def test_without_the_pack_manager_its_package_is_named(server, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cmsis_pack_manager", None)
    result = tinyfuse_("cmsis-nn", "install")
    assert result.exit_code == 3 and "pip install '.[packs]'" in result.stderr


# --- devices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, target",
    [
        ("ACM0", "cortex-m0plus"),
        ("ACM3", "cortex-m3"),
        ("ACM4R5ZITx", "cortex-m4"),
        ("acm4r5zi", "cortex-m4"),  # two packages of one device
        ("ACM4S", "cortex-m4+nofp"),
        ("ACM7S", "cortex-m7+nofp.dp"),
        ("ACM33", "cortex-m33"),
        ("ACM33N", "cortex-m33+nofp+nodsp"),
        ("ACM55", "cortex-m55"),
        ("ACM55I", "cortex-m55+nofp"),
        ("ACM55N", "cortex-m55+nomve"),
        ("ACM85", "cortex-m85"),
        ("ACD7:cm7", "cortex-m7"),
        ("ACD7:CM4", "cortex-m4"),
    ],
)
def test_a_name_gives_the_target(server_once, name, target) -> None:
    found = find_device(name, lambda text: None)
    assert (found.target, found.ram, found.flash) == (target, 0xA0000, 0x200000)
    assert found.pack == "Acme::Boards_DFP 1.2.0"


@pytest.mark.parametrize(
    "name, message",
    [
        ("ACM4R5", "matches different devices; give one of ACM4R5ZG, ACM4R5ZIPx, ACM4R5ZITx"),
        ("ACD7", "matches different devices; give one of ACD7:CM4, ACD7:CM7"),
        ("ACD7:CM0", "has no such core; there are ACD7:CM4, ACD7:CM7"),
        ("ACA7", "has a CortexA7; tinyfuse has no target for it"),
        ("STM32F", "no device is called 'STM32F'"),
    ],
)
def test_names_that_are_no_device(server_once, name, message) -> None:
    with pytest.raises(UsageError, match=message):
        find_device(name, lambda text: None)


_cached: dict[str, bytes] = {}


@pytest.fixture
def server_once(server, tmp_path):
    """The server with descriptions already in the cache, because downloading them takes a second."""
    home = tmp_path / "home" / "cmsis-pack-manager"
    if not _cached:
        find_device("ACM3", lambda text: None)
        _cached.update({p.name: p.read_bytes() for p in home.iterdir()})
    home.mkdir(parents=True, exist_ok=True)
    for name, data in _cached.items():
        (home / name).write_bytes(data)
    return server


def test_the_device_gives_target_and_limits(server_once, monkeypatch) -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 8, 8, 4))
    Path("net.tflite").write_bytes(sketch.build([x], [sketch.conv(x, 4, (3, 3))]))
    monkeypatch.setenv("PATH", "")  # nothing to measure the code with: that takes seconds
    command = ["report", "net.tflite", "--kernels", "tinyfuse", "--json", "--device"]
    data = json.loads(tinyfuse_(*command, "ACM4R5ZG").stdout)
    assert data["target"] == "cortex-m4"
    assert (data["options"]["max_ram"], data["options"]["max_flash"]) == (0xA0000, 0x100000)
    assert json.loads(tinyfuse_(*command, "ACM4R5ZG", "--max-ram", "1M").stdout)["options"]["max_ram"] == 1 << 20
    assert data["device"] == {"name": "ACM4R5ZG", "ram": 0xA0000, "flash": 0x100000}
    told = tinyfuse_(*(word for word in command if word != "--json"), "ACM4R5ZG").stdout
    for sort, used, there in (
        ("RAM", data["arena_bytes"], 0xA0000),
        ("flash", data["weight_bytes"] + data["code_bytes"], 0x100000),
    ):
        share = f"{used / 1024:.1f} KiB, {100 * used / there:.1f} % of ACM4R5ZG's {there / 1024:,.1f} KiB"
        assert f"{sort:<8} {used:>11,} bytes   {share}" in told
    data = json.loads(tinyfuse_(*command, "ACM4R5ZG", "--memory", "device", "--memory", "sdram=8M:slow").stdout)
    held = {bank["name"]: bank["used_bytes"] > 0 for bank in data["memory"]["banks"]}
    assert held == {"IROM1": True, "IRAM2": True, "IRAM1": False, "IRAM3": False, "sdram": False}
    alone = tinyfuse_("report", "net.tflite", "--target", "cortex-m4", "--memory", "device")
    assert alone.exit_code == 2 and "the memory banks of --device" in alone.stderr
    server_once.close()  # all of it came out of the cache, and does again
    assert tinyfuse_(*command, "ACM33N").exit_code == 0
    both = tinyfuse_("report", "net.tflite", "--device", "ACM3", "--target", "host")
    assert both.exit_code == 2 and "not both" in both.stderr
    neither = tinyfuse_("report", "net.tflite")
    assert neither.exit_code == 2 and "Missing option '--target' (or '--device')" in neither.stderr


def test_a_device_of_a_known_board_gives_its_timing(server_once, monkeypatch) -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 4))
    Path("net.tflite").write_bytes(sketch.build([x], [sketch.conv(x, 4, (1, 1))]))
    monkeypatch.setenv("PATH", "")

    def counted(*words: str) -> tuple[str, str | None]:
        done = tinyfuse_("report", "net.tflite", "--kernels", "tinyfuse", "--json", *words)
        options = json.loads(done.stdout)["options"]
        return options["count"], options["timing"]

    assert counted("--device", "STM32L4R5ZI") == ("cycles", "nucleo-l4r5zi")
    assert counted("--device", "STM32L4R5ZI", "--timing", "80MHz") == ("cycles", "80MHz")
    assert counted("--device", "STM32L4R5ZI", "--count", "instructions") == ("instructions", "nucleo-l4r5zi")
    assert counted("--device", "ACM4R5ZG") == ("instructions", None)


def test_a_model_that_is_too_large_for_the_device_is_refused(server, tmp_path) -> None:
    small = device("ACTINY", [{"Dcore": "Cortex-M4"}], [("IROM1", 0, 0x1000), ("IRAM1", 0x20000000, 0x80)])
    server.add("Acme", "Boards_DFP", ["1.3.0"], family("ACT", [small]))
    sketch = Sketch(1)
    x = sketch.value((1, 8, 8, 4))
    Path("net.tflite").write_bytes(sketch.build([x], [sketch.conv(x, 4, (3, 3))]))
    result = tinyfuse_("gen", "net.tflite", "--device", "ACTINY", "--kernels", "tinyfuse")
    assert result.exit_code == 1 and "--max-ram allows 128" in result.stderr
    assert not Path("net_tinyfuse").exists()


def test_listing_and_updating(server_once) -> None:
    lines = tinyfuse_("devices", "acm55").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["ACM55", "ACM55I", "ACM55N"]
    assert lines[0] == "ACM55: cortex-m55, 655,360 bytes RAM, 2,097,152 bytes flash (Acme::Boards_DFP 1.2.0)"
    added = device("ACNEW", [{"Dcore": "Cortex-M3"}], [FLASH, *RAMS])
    server_once.add("Acme", "New_DFP", ["1.0.0"], family("ACN", [added]))
    assert tinyfuse_("devices", "ACNEW").stdout == ""
    (found,) = json.loads(tinyfuse_("devices", "ACNEW", "--update", "--json").stdout)["devices"]
    assert found == {"name": "ACNEW", "target": "cortex-m3", "ram": 0xA0000, "flash": 0x200000,
                     "pack": "Acme::New_DFP 1.0.0",
                     "memories": ["IROM1=2097152", "IRAM2=65536", "IRAM1=196608", "IRAM3=458752"]}  # fmt: skip


def test_an_update_that_fails_keeps_what_was_there(server_once) -> None:
    server_once.close()
    failed = tinyfuse_("devices", "ACM3", "--update")
    assert failed.exit_code == 3 and "can't be reached" in failed.stderr
    assert tinyfuse_("devices", "ACM33").stdout.count("\n") == 2
