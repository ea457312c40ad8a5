"""Damaged files other than models: data sets, labels, manifests, answers of commands, lines of boards, options of layers.

Each is read, or refused with one UsageError, in 20 seconds of processor time and 2 GB; nothing else happens. `--campaign` tries 100,000,
and TINYFUSE_FUZZ_SEED=7 draws others. What broke is kept in the folder that the failure names.
"""

from __future__ import annotations

import io
import json
import os
import random
import resource
import subprocess
import sys
import time
import traceback
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyfuse.banks import parse_banks
from tinyfuse.board.frames import Decoder, Frame, encode_frame
from tinyfuse.cli.board_costs import read_validation
from tinyfuse.cli.diff import diff
from tinyfuse.data.inputs import InputSpec
from tinyfuse.data.labels import read_labels
from tinyfuse.data.samples import open_samples
from tinyfuse.emit.manifest import JOURNAL, MANIFEST, journal_text, manifest_text
from tinyfuse.emit.output_folder import write_folder
from tinyfuse.errors import TinyfuseError
from tinyfuse.frontend.labels import label_lines
from tinyfuse.ir import Quant, Tensor
from tinyfuse.run.arrays import read_inputs

SECONDS, MEMORY = 20.0, 2 << 30

SPEC = InputSpec("x", "x", (1, 4, 3), "int8", 0.5, 3)
TENSOR = Tensor("x", (1, 4, 3), "int8", Quant((0.5,), (3,)))
FILES = {"net.c": b"int x;\n", "net.h": b"int y;\n"}
ANSWER = {
    "schema_version": 1, "tinyfuse_version": "0.1", "model": "a.tflite", "model_sha256": "00", "target": "cortex-m4",
    "arena_bytes": 100, "macs": 10, "instructions": 2000, "groups": [{"operators": [{"kind": "CONV_2D"}], "cycles": 10}],
    "counter": "DWT", "exact": True, "within_bound": True, "options": {"optimize": "ram"}, "warnings": [],
}  # fmt: skip


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy(np.zeros((5, 4, 3), np.int8)))
    return file.getvalue()


def _wav() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(bytes(24))
    return file.getvalue()


def _samples(path: Path) -> None:
    for _ in open_samples(str(path), [SPEC]).batches(64):
        pass


def _update(path: Path) -> None:
    """A folder whose manifest (or journal) is the damaged file; nothing outside of it may change."""
    folder, beside = path.parent / "module", path.parent / "beside.txt"
    folder.mkdir()
    beside.write_text("mine")
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    (folder / path.stem).write_bytes(path.read_bytes())
    if path.stem == JOURNAL:
        (folder / MANIFEST).write_text(manifest_text({}, FILES))
    try:
        new = {"net.c": b"int z;\n"}
        write_folder(folder, new | {MANIFEST: manifest_text({}, new).encode()}, force=False)
    finally:
        assert beside.read_text() == "mine"


def _decode(path: Path) -> None:
    decoder, data = Decoder(), path.read_bytes()
    for start in range(0, len(data), 7):
        decoder.add(data[start : start + 7])
        while decoder.next() is not None:
            pass
    decoder.skip_incomplete()


#: kind -> (file's name, sound content, reader)
KINDS: dict[str, tuple[str, bytes, Callable[[Path], Any]]] = {
    "npy": ("x.npy", _npy(np.zeros((5, 4, 3), np.int8)), _samples),
    "floats": ("x.npy", _npy(np.zeros((5, 1, 4, 3), np.float32)), _samples),
    "npz": ("x.npz", _npz(), _samples),
    "csv": ("x.csv", b"a,b\n" + b",".join(b"%d" % i for i in range(12)) + b"\n", _samples),
    "wav": ("x.wav", _wav(), _samples),
    "inputs": ("x.npy", _npy(np.ones((1, 4, 3), np.float32)), lambda path: read_inputs((str(path),), (TENSOR,))),
    "archive of inputs": ("x.npz", _npz(), lambda path: read_inputs((str(path),), (TENSOR,))),
    "classes": ("l.txt", b"cat\ndog\ncat\n", lambda path: read_labels(str(path))),
    "numbers": ("l.csv", b"1\n2.5\n-3\n", lambda path: read_labels(str(path))),
    "label array": ("l.npy", _npy(np.arange(6)), lambda path: read_labels(str(path))),
    "names": ("n.txt", "yes\nno\n\u00fcber\n".encode(), lambda path: label_lines(str(path))),
    "manifest": (f"{MANIFEST}.x", manifest_text({"schema_version": 1}, FILES).encode(), _update),
    "journal": (f"{JOURNAL}.x", journal_text({"net.c": frozenset({"0" * 64})}, FILES).encode(), _update),
    "answer": ("a.json", json.dumps(ANSWER).encode(), lambda path: diff(str(path), str(path), ("macs=5%",))),
    "validation": ("v.json", json.dumps(ANSWER).encode(), lambda path: read_validation(str(path))),
    "board": ("line.bin", b"boot\n" + b"".join(encode_frame(Frame(1, n, bytes(9))) for n in range(3)), _decode),
    "banks": ("b.txt", b"dtcm=64K qspi=1M:slow", lambda path: parse_banks(path.read_text("latin-1").split())),
}  # fmt: skip

_TOKENS = (
    *(b"\0", b"\n", b"\r\n", b'"', b"'", b"*/", b"\\", b",", b"../", b"/etc/passwd", b"C:\\x", b"{", b"[" * 5000, b"}", b"("),
    *(b"-1", b"0", b"1e999", b"9" * 30, b"9" * 5000, b"NaN", b"inf", b"None", b"True", b"'O'", b"'<U9'", b"'|V0'", b"'<f16'"),
    *(b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\xef\xbb\xbf", b"\xc3", b"PK\x01\x02", b"RIFF"),
)  # fmt: skip
_VALUES = (
    None, True, -1, 0, 2**31, 2**63, 2**64, 10**400, 1e308, float("nan"), float("inf"), "", "../../x", "/tmp/x", "a\0b",
    "*/", "\ud800", "x" * 70000, [], {}, [[]], {"": None}, ["x"] * 1000,
)  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Content with one to four changes: of a value of JSON, else of bytes, numbers and pieces."""
    for _ in range(rng.randint(1, 4)):
        changed = _other_value(data, rng) if data[:1] == b"{" and rng.random() < 0.7 else None
        data = changed or _other_bytes(data, rng)
    return data


def _other_value(data: bytes, rng: random.Random) -> bytes | None:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        return None
    places: list[tuple[Any, Any]] = []
    waiting = [whole]
    for value in waiting:
        keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        places += [(value, key) for key in keys]
        waiting += [value[key] for key in keys if isinstance(value[key], dict | list)]
    if not places:
        return None
    inside, key = rng.choice(places)
    if rng.random() < 0.2:
        del inside[key]
    elif isinstance(inside, dict) and rng.random() < 0.3:
        inside[str(rng.choice(_VALUES))[:300]] = inside.pop(key)
    else:
        inside[key] = rng.choice(_VALUES)
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def _other_bytes(data: bytes, rng: random.Random) -> bytes:
    at, size = rng.randint(0, len(data)), rng.choice((1, 1, 2, 4, 16))
    numbers = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    way = rng.randrange(6)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + data[at + size :]
    if way == 2:
        return data[:at] + rng.choice(_TOKENS) + data[at:]
    if way == 3:
        return data[:at] + bytes(rng.randrange(256) for _ in range(size)) + data[at + size :]
    if way == 4 and numbers:
        at = rng.choice(numbers)
        return data[:at] + rng.choice(_TOKENS) + data[at + 1 :]
    return data[:at] + data[rng.randint(0, at) : at] * rng.choice((1, 3, 200)) + data[at:]


def attack(count: int, seed: int, folder: Path) -> list[str]:
    """Descriptions of what broke among `count` files of each kind, which are kept in the folder."""
    finds: list[str] = []
    for kind, (name, data, read) in KINDS.items():
        rng = random.Random(f"{seed} {kind}")
        for number in range(count):
            place = folder / f"{kind} {number}"
            place.mkdir()
            path, began = place / name, time.process_time()
            path.write_bytes(damaged(data, rng))
            try:
                read(path)
            except TinyfuseError as error:
                what = "" if error.exit_code == 2 else f"{type(error)}: {str(error)[:300]}"
            except BaseException:
                what = traceback.format_exc(limit=-3)
            else:
                what = ""
            if time.process_time() - began > SECONDS:
                what = what or f"{time.process_time() - began:.1f} s"
            if what:
                finds.append(f"{path}: {what}")
            else:
                remove(place)
    return finds


def remove(place: Path) -> None:
    for path in sorted(place.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    place.rmdir()


def limited(count: int, seed: int, folder: Path) -> None:
    """Runs `attack` in a process with 2 GB."""
    code = f"import test_hostile_inputs as t; t.main({count}, {seed}, {str(folder)!r})"
    paths = os.pathsep.join(str(Path(__file__).resolve().parents[up]) for up in (0, 2))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths},
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def main(count: int, seed: int, folder: str) -> None:
    """The child process of `limited`."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    finds = attack(count, seed, Path(folder))
    print("\n\n".join(finds[:12]), f"\n{len(finds)} finds")
    sys.exit(1 if finds else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_file_is_read(tmp_path: Path, kind: str) -> None:
    name, data, read = KINDS[kind]
    (tmp_path / name).write_bytes(data)
    try:
        read(tmp_path / name)
    except TinyfuseError as error:
        assert kind == "wav" and "soundfile" in str(error)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    limited(40, 0, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_campaign(tmp_path: Path, part: int) -> None:
    limited(10_000 // len(KINDS) + 1, int(os.environ.get("TINYFUSE_FUZZ_SEED", "1")) * 100 + part, tmp_path)
