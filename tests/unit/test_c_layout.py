"""The layout of the C's data in Python: sizes come from the headers, and arrays of structs match the C."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tinyfuse.errors import InternalFault
from tinyfuse.kernels.core.c_constants import c_constant, c_parameters
from tinyfuse.kernels.layers.common.params import SCALE
from tinyfuse.kernels.movement.copies import NEST
from tinyfuse.kernels.movement.resize_bilinear import PLACE
from tinyfuse.kernels.requantize.single_rounding import SINGLE_ROUNDING
from tinyfuse.kernels.requantize.two_roundings import REQUANT
from tinyfuse.ops.core.binary import MOST_LOOPS
from tinyfuse.plan.check.scratch_sizes import POINTER_BYTES, QUAD_BYTES
from tinyfuse.resources import resource_dir

#: structs whose arrays Python makes, and their headers
STRUCTS = {
    "tinyfuse_requant": ("tinyfuse_requantize.h", REQUANT),
    "tinyfuse_single_rounding": ("tinyfuse_requantize.h", SINGLE_ROUNDING),
    "tinyfuse_dense_scale": ("tinyfuse_dense.h", SCALE),
    "tinyfuse_place": ("tinyfuse_bilinear.h", PLACE),
}


def c_claims() -> list[str]:
    """C conditions that hold if Python's layout matches the C's."""
    claims = [
        f"sizeof(((tinyfuse_broadcast *)0)->a_stride) == {4 * MOST_LOOPS}",
        f"sizeof(((tinyfuse_strided *)0)->step) == {4 * NEST}",
    ]
    for struct, (_, dtype) in STRUCTS.items():
        claims.append(f"sizeof({struct}) == {dtype.itemsize}")
        for name, (field, offset, *_) in (dtype.fields or {}).items():
            claims.append(f"offsetof({struct}, {name}) == {offset}")
            claims.append(f"sizeof((({struct} *)0)->{name}) == {field.itemsize}")
    return claims


def compiles(claims: list[str], folder: Path) -> bool:
    headers = {header for header, _ in STRUCTS.values()} | {"tinyfuse_broadcast.h", "tinyfuse_strided.h"}
    text = "".join(f'#include "{header}"\n' for header in ["stddef.h", *sorted(headers)])
    text += "".join(f"typedef char claim{i}[{claim} ? 1 : -1];\n" for i, claim in enumerate(claims))
    (folder / "claims.c").write_text(text)
    command = ["gcc", "-std=c99", "-fsyntax-only", f"-I{resource_dir('runtime_c')}", str(folder / "claims.c")]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_structs_lie_as_the_c_reads_them(tmp_path: Path) -> None:
    claims = c_claims()
    assert len(claims) > 2 * len(STRUCTS)
    assert compiles(claims, tmp_path)
    assert not compiles([*claims, "sizeof(tinyfuse_requant) == 13"], tmp_path)


def test_a_size_is_what_its_header_says() -> None:
    text = (resource_dir("runtime_c") / "tinyfuse_depthwise_3x3.h").read_text()
    size = c_constant("tinyfuse_depthwise_3x3.h", "TINYFUSE_QUAD_BYTES")
    # the compiler holds the name against the struct, and nobody the assembly against the name
    assert "sizeof(tinyfuse_quad) == TINYFUSE_QUAD_BYTES" in text
    assert set(re.findall(r"add r0, r1, #(\d+)", text)) == {str(size)}
    # the checker says it a second time
    assert (size, c_constant("tinyfuse_common.h", "TINYFUSE_POINTER_BYTES")) == (QUAD_BYTES, POINTER_BYTES)


def test_a_name_that_the_header_lacks_is_told() -> None:
    with pytest.raises(InternalFault, match=re.escape("runtime_c/tinyfuse_common.h gives TINYFUSE_NOTHING no value")):
        c_constant("tinyfuse_common.h", "TINYFUSE_NOTHING")


def test_parameters_have_the_names_of_the_c() -> None:
    assert c_parameters("tinyfuse_lstm_rows") == ("p", "scratch", "offset")
    # macros define these
    assert c_parameters("tinyfuse_biased_s16_s32") == ("channels", "biases", "scratch", "count")
    assert c_parameters("tinyfuse_planes_to_rows_mve_8") == ("in", "plane", "channels", "count", "out")
    with pytest.raises(InternalFault, match="does not define tinyfuse_nothing"):
        c_parameters("tinyfuse_nothing")


def test_arrays_of_structs_have_no_padding() -> None:
    for _, dtype in STRUCTS.values():
        assert dtype.itemsize == sum(np.dtype(field[0]).itemsize for field in (dtype.fields or {}).values())
