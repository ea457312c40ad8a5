"""Parts of schemas for modules that ran on an emulated core or a board."""

from __future__ import annotations

from tinyfuse.profile.instruction_kinds import KINDS
from tinyfuse.schema.parts import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    TEXT,
    Schema,
    items,
    merge_records,
    nullable,
    record,
    table,
)
from tinyfuse.schema.plan_parts import OPERATOR, PORT, PREDICTED_CYCLES, SHAPE

_VALUE: Schema = {"type": ["number", "boolean"]}
COMPARISON = record(
    oracle=TEXT,
    runs=COUNT,
    seed=COUNT,
    frames=nullable(COUNT),
    outputs=COUNT,
    mismatches=COUNT,
    first_mismatch=nullable(record(run=COUNT, tensor=TEXT, index=SHAPE, expected=_VALUE, computed=_VALUE)),
    problems=items(TEXT),
    exact=FLAG,
    unproven=FLAG,
    within_bound=FLAG,
    max_ulp=COUNT,
    max_step=COUNT,
    operator_bounds=table(record(ulp=COUNT, bound=COUNT)),
)
VERIFY = record(
    emulator=TEXT,
    compiler=TEXT,
    compiler_opt=TEXT,
    macs=COUNT,
    instructions=nullable(COUNT),
    instructions_mean=nullable(COUNT),
    least_instructions=nullable(COUNT),
    most_instructions=nullable(COUNT),
    longest_step_instructions=nullable(COUNT),
    arena_bytes=COUNT,
    state_bytes=COUNT,
    ram_bytes=nullable(COUNT),
    stack_bytes=nullable(COUNT),
    flash_code_bytes=nullable(COUNT),
    flash_weight_bytes=nullable(COUNT),
    kernel_symbols=table(items(TEXT)),
    cmsis_nn=nullable(record(path=TEXT, version=TEXT)),
    levels=nullable(items(record(operator=TEXT, channels=COUNT, reached=COUNT))),
    builds=items(
        record(
            emulator=TEXT,
            compiler=TEXT,
            compiler_opt=TEXT,
            runs=COUNT,
            elements=COUNT,
            mismatches=COUNT,
            within_bound=FLAG,
            problems=items(TEXT),
            stack_bytes=nullable(COUNT),
        )
    ),
    command=TEXT,
)

_REGIONS = nullable(record(flash=COUNT, arena=COUNT, stack=COUNT, other=COUNT))
_USAGE = record(
    instructions=nullable(COUNT),
    instructions_per_mac=nullable(NUMBER),
    instructions_per_output=nullable(NUMBER),
    instruction_kinds=nullable(record(**dict.fromkeys(KINDS, COUNT))),
    loaded_bytes=_REGIONS,
    stored_bytes=_REGIONS,
    bank_bytes=nullable(table(record(loaded=COUNT, stored=COUNT))),
    calls=nullable(COUNT),
    estimated_cycles=nullable(COUNT),
)
PREDICTED = record(predicted_instructions=nullable(COUNT))
_BOTH_PREDICTED = merge_records(PREDICTED, record(predicted_cycles=nullable(COUNT)))
_TOTALS = merge_records(
    _USAGE, PREDICTED, PREDICTED_CYCLES,
    record(
        estimated_ms=nullable(NUMBER),
        instructions_mean=nullable(COUNT), macs=COUNT, cycles_source=nullable(TEXT), arena_bytes=COUNT,
        state_bytes=COUNT, ram_bytes=nullable(COUNT), stack_bytes=nullable(COUNT),
    ),
)  # fmt: skip
PROFILE = merge_records(
    _TOTALS,
    record(
        emulator=TEXT,
        compiler=TEXT,
        compiler_opt=TEXT,
        board_cycles=nullable(COUNT),
        far_above_floor=NUMBER,
        groups=items(
            merge_records(
                _USAGE,
                _BOTH_PREDICTED,
                record(
                    name=TEXT,
                    macs=COUNT,
                    output_elements=COUNT,
                    board_cycles=nullable(COUNT),
                    stack_bytes=nullable(COUNT),
                    operators=items(
                        merge_records(
                            OPERATOR,
                            _USAGE,
                            _BOTH_PREDICTED,
                            record(
                                kernel=TEXT,
                                macs=COUNT,
                                output_elements=COUNT,
                                floor_per_mac=nullable(NUMBER),
                                functions=nullable(
                                    items(
                                        record(
                                            name=nullable(TEXT), instructions=COUNT, estimated_cycles=nullable(COUNT)
                                        )
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            )
        ),
        outside_groups=_USAGE,
        unfused=nullable(_TOTALS),
    ),
)

_CYCLES = record(cycles=nullable(COUNT), least_cycles=nullable(COUNT), most_cycles=nullable(COUNT))
_COUNTED = record(macs=COUNT, output_elements=COUNT, predicted_instructions=nullable(COUNT))
BOARD = merge_records(
    _CYCLES,
    PREDICTED,
    record(
        port=TEXT,
        counter=TEXT,
        overhead_cycles=COUNT,
        outside_cycles=nullable(INTEGER),
        longest_step_cycles=nullable(COUNT),
        macs=COUNT,
        arena_bytes=COUNT,
        state_bytes=COUNT,
        groups=items(
            merge_records(
                _CYCLES,
                _COUNTED,
                record(name=TEXT, operators=items(merge_records(OPERATOR, _COUNTED, record(kernel=TEXT, entry=TEXT)))),
            )
        ),
    ),
)

RUN = record(
    notes=items(TEXT),
    emulator=TEXT,
    compiler=TEXT,
    compiler_opt=TEXT,
    runs=COUNT,
    instructions=nullable(COUNT),
    arena_bytes=COUNT,
    output=nullable(TEXT),
    outputs=items(merge_records(PORT, record(values=items({"type": ["number", "boolean", "string"]})))),
)
