"""Parses objdump's output for `profile`."""

from __future__ import annotations

from tinyfuse.profile.image import Instruction, parse_instructions

_TEXT = """
Disassembly of section .text:

00000040 <net_run>:
      40:\tb5f0      \tpush\t{r4, r5, r6, r7, lr}
      42:\tf44f 4580 \tmov.w\tr5, #16384\t@ 0x4000
      46:\tf000 f803 \tbl\t50 <arm_nn_x.constprop.0>
      4a:\tbf00      \tnop
      4c:\t12345678 \t.word\t0x12345678
      5c:\t6e6f6328 75207473 38746e69 2a20745f     (const uint8_t *
      50:\te7fe      \tb.n\t50 <arm_nn_x.constprop.0>
"""


def test_instructions_are_told_from_headings_and_data() -> None:
    assert list(parse_instructions(_TEXT)) == [
        Instruction(0x40, 0x42, "push", "{r4, r5, r6, r7, lr}", None),
        Instruction(0x42, 0x46, "mov.w", "r5, #16384", None),
        Instruction(0x46, 0x4A, "bl", "50 <arm_nn_x.constprop.0>", "arm_nn_x.constprop.0"),
        Instruction(0x4A, 0x4C, "nop", "", None),
        Instruction(0x50, 0x52, "b.n", "50 <arm_nn_x.constprop.0>", None),
    ]
