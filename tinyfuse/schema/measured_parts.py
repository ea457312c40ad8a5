"""What answers say of a module that ran: on an emulated core or a board."""

from __future__ import annotations

from tinyfuse.profile.instruction_kinds import KINDS
from tinyfuse.schema.parts import COUNT, FLAG, INTEGER, NUMBER, TEXT, Schema, items, joined, none_or, record, table
from tinyfuse.schema.plan_parts import OPERATOR, PORT, PREDICTED_CYCLES, SHAPE

_VALUE: Schema = {"type": ["number", "boolean"]}
COMPARISON = record(
    oracle=TEXT,
    runs=COUNT,
    seed=COUNT,
    frames=none_or(COUNT),
    outputs=COUNT,
    mismatches=COUNT,
    first_mismatch=none_or(record(run=COUNT, tensor=TEXT, index=SHAPE, expected=_VALUE, computed=_VALUE)),
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
    instructions=none_or(COUNT),
    instructions_mean=none_or(COUNT),
    least_instructions=none_or(COUNT),
    most_instructions=none_or(COUNT),
    longest_step_instructions=none_or(COUNT),
    arena_bytes=COUNT,
    state_bytes=COUNT,
    ram_bytes=none_or(COUNT),
    stack_bytes=none_or(COUNT),
    flash_code_bytes=none_or(COUNT),
    flash_weight_bytes=none_or(COUNT),
    kernel_symbols=table(items(TEXT)),
    cmsis_nn=none_or(record(path=TEXT, version=TEXT)),
    levels=none_or(items(record(operator=TEXT, channels=COUNT, reached=COUNT))),
    command=TEXT,
)

_REGIONS = none_or(record(flash=COUNT, arena=COUNT, stack=COUNT, other=COUNT))
_USAGE = record(
    instructions=none_or(COUNT),
    instructions_per_mac=none_or(NUMBER),
    instructions_per_output=none_or(NUMBER),
    instruction_kinds=none_or(record(**dict.fromkeys(KINDS, COUNT))),
    loaded_bytes=_REGIONS,
    stored_bytes=_REGIONS,
    bank_bytes=none_or(table(record(loaded=COUNT, stored=COUNT))),
    calls=none_or(COUNT),
    estimated_cycles=none_or(COUNT),
)
PREDICTED = record(predicted_instructions=none_or(COUNT))
_BOTH_PREDICTED = joined(PREDICTED, record(predicted_cycles=none_or(COUNT)))
_TOTALS = joined(
    _USAGE, PREDICTED, PREDICTED_CYCLES,
    record(
        estimated_ms=none_or(NUMBER),
        instructions_mean=none_or(COUNT), macs=COUNT, cycles_source=none_or(TEXT), arena_bytes=COUNT,
        state_bytes=COUNT, ram_bytes=none_or(COUNT), stack_bytes=none_or(COUNT),
    ),
)  # fmt: skip
PROFILE = joined(
    _TOTALS,
    record(
        emulator=TEXT,
        compiler=TEXT,
        compiler_opt=TEXT,
        board_cycles=none_or(COUNT),
        far_above_floor=NUMBER,
        groups=items(
            joined(
                _USAGE,
                _BOTH_PREDICTED,
                record(
                    name=TEXT,
                    macs=COUNT,
                    output_elements=COUNT,
                    board_cycles=none_or(COUNT),
                    stack_bytes=none_or(COUNT),
                    operators=items(
                        joined(
                            OPERATOR,
                            _USAGE,
                            _BOTH_PREDICTED,
                            record(
                                kernel=TEXT,
                                macs=COUNT,
                                output_elements=COUNT,
                                floor_per_mac=none_or(NUMBER),
                                functions=none_or(
                                    items(
                                        record(name=none_or(TEXT), instructions=COUNT, estimated_cycles=none_or(COUNT))
                                    )
                                ),
                            ),
                        )
                    ),
                ),
            )
        ),
        outside_groups=_USAGE,
        unfused=none_or(_TOTALS),
    ),
)

_CYCLES = record(cycles=none_or(COUNT), least_cycles=none_or(COUNT), most_cycles=none_or(COUNT))
_COUNTED = record(macs=COUNT, output_elements=COUNT, predicted_instructions=none_or(COUNT))
BOARD = joined(
    _CYCLES,
    PREDICTED,
    record(
        port=TEXT,
        counter=TEXT,
        overhead_cycles=COUNT,
        outside_cycles=none_or(INTEGER),
        longest_step_cycles=none_or(COUNT),
        macs=COUNT,
        arena_bytes=COUNT,
        state_bytes=COUNT,
        groups=items(
            joined(
                _CYCLES,
                _COUNTED,
                record(name=TEXT, operators=items(joined(OPERATOR, _COUNTED, record(kernel=TEXT, entry=TEXT)))),
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
    instructions=none_or(COUNT),
    arena_bytes=COUNT,
    output=none_or(TEXT),
    outputs=items(joined(PORT, record(values=items({"type": ["number", "boolean", "string"]})))),
)
