"""The answer of each command, key by key."""

from __future__ import annotations

from tinyfuse.report.answer import SCHEMA_VERSION
from tinyfuse.schema.parts import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    SHA256,
    TEXT,
    Schema,
    items,
    joined,
    none_or,
    optional,
    options_schema,
    record,
    table,
)

_VERSIONS = record(schema_version={"const": SCHEMA_VERSION}, tinyfuse_version=TEXT)
_ENVELOPE = joined(
    _VERSIONS,
    record(model=TEXT, model_sha256=none_or(SHA256), target=TEXT, options=options_schema(), warnings=items(TEXT)),
)
_OPERATOR = record(kind=TEXT, index=INTEGER, name=TEXT)
_SHAPE = items(COUNT)
_PORT = record(
    name=TEXT, symbol=TEXT, shape=_SHAPE, dtype=TEXT, scale=none_or(NUMBER), zero_point=none_or(INTEGER)
)  # fmt: skip
_REORDERING = none_or(
    record(operators_moved=COUNT, file_order_arena_bytes=COUNT, file_order_predicted_instructions=none_or(COUNT))
)

_MEMORY_BANKS = record(
    banks=items(
        record(
            name=TEXT, bytes=COUNT, kind={"enum": ["ram", "flash"]}, slow=FLAG, fast=FLAG, used_bytes=COUNT,
            arena_bytes=COUNT, arena_traffic=COUNT, state_bytes=COUNT,
            weight_bytes=COUNT, weight_loads=COUNT, uncopied_weight_loads=COUNT,
            layers=items(record(operator=TEXT, bytes=COUNT, loads=COUNT, copied=FLAG)),
        )
    ),
    arena_parts=items(record(bank=TEXT, start=COUNT, bytes=COUNT)),
    copies=items(record(group=COUNT, begun=COUNT, bytes=COUNT, offset=COUNT)),
    copied_bytes=COUNT,
    uncopied_arena_bytes=none_or(COUNT),
    code=none_or(record(name=TEXT, bytes=COUNT, kind={"enum": ["ram", "flash"]})),
)  # fmt: skip

_BOARD_TIMING = record(
    name=TEXT, description=TEXT, mhz=none_or(NUMBER), wait_states=COUNT, line=COUNT, reads=NUMBER, fetch=NUMBER,
    source=TEXT, cycles_per_flash_byte=NUMBER,
)  # fmt: skip
_TIMING = none_or(_BOARD_TIMING)
_PREDICTED_CYCLES = record(predicted_cycles=none_or(COUNT), predicted_ms=none_or(NUMBER), timing=_TIMING)

_FIGURES = record(
    macs=COUNT,
    model_macs=COUNT,
    predicted_instructions=none_or(COUNT),
    arena_bytes=COUNT,
    arena_lower_bound=COUNT,
    placement_optimal=FLAG,
    unfused_arena_bytes=COUNT,
    state_bytes=COUNT,
    states=items(record(name=TEXT, offset=COUNT, bytes=COUNT, dtype=TEXT, shape=_SHAPE, ring=FLAG)),
    weight_bytes=COUNT,
    memory=none_or(_MEMORY_BANKS),
    compressed=none_or(
        record(
            bytes_spared=INTEGER,
            instructions_added=none_or(INTEGER),
            layers=items(
                record(
                    operator=TEXT,
                    weight_bytes=COUNT,
                    index_bytes=COUNT,
                    table_bytes=COUNT,
                    bytes_spared=INTEGER,
                    instructions_added=none_or(INTEGER),
                )
            ),
            packed=items(record(operator=TEXT, reason=TEXT)),
        )
    ),
    code_bytes=COUNT,
    code_bytes_measured=FLAG,
    rewrites=items(
        # what a rewrite saves may be less than nothing
        record(**{"pass": TEXT}, what=TEXT, macs_saved=INTEGER, weight_bytes_saved=INTEGER, copied_bytes_saved=INTEGER)
    ),
    reordering=_REORDERING,
    limits=items(record(search=TEXT, most=COUNT, of=TEXT)),
    inputs=items(_PORT),
    outputs=items(_PORT),
    window=none_or(
        record(
            input=TEXT,
            axis=COUNT,
            frames=COUNT,
            step=COUNT,
            steps_to_fill=COUNT,
            rows=none_or(COUNT),
            whole_macs=COUNT,
            whole_arena_bytes=none_or(COUNT),
            whole_state_bytes=none_or(COUNT),
            whole_predicted_instructions=none_or(COUNT),
        )
    ),
    longest_step=none_or(record(predicted_instructions=none_or(COUNT), group=COUNT, operator=TEXT)),
    fed_input=none_or(TEXT),
    groups=items(
        record(
            name=TEXT,
            operators=items(_OPERATOR),
            kernels=items(TEXT),
            library={"enum": ["tinyfuse", "cmsis-nn", "both"]},
            macs=COUNT,
            scratch_bytes=COUNT,
            traffic_bytes=COUNT,
            unfused_traffic_bytes=COUNT,
        )
    ),
    buffers=items(record(name=TEXT, offset=COUNT, bytes=COUNT, first_step=COUNT, last_step=COUNT, owner=TEXT)),
    views=items(record(tensor=TEXT, buffer=TEXT, offset=COUNT, bytes=COUNT)),
)

_TERM = record(feature=TEXT, count=NUMBER, factor=NUMBER)
_COSTS = record(
    table=TEXT,
    about=table(TEXT),
    operators=items(
        record(
            group=COUNT,
            operator=TEXT,
            entry=TEXT,
            instructions=none_or(COUNT),
            terms=none_or(items(_TERM)),
            share=NUMBER,
            loop=items(_TERM),
            code_bytes=none_or(COUNT),
            functions=items(TEXT),
        )
    ),
    code=record(bytes=COUNT, module_bytes=COUNT, functions=items(record(name=TEXT, bytes=COUNT)), guessed_bytes=COUNT),
)
_REPORT = record(
    pareto=none_or(
        items(
            record(
                arena_bytes=COUNT,
                state_bytes=COUNT,
                macs=COUNT,
                predicted_instructions=none_or(COUNT),
                predicted_cycles=none_or(COUNT),
                slower=NUMBER,
                groups=COUNT,
                optimize=items(TEXT),
                options=items(TEXT),
            )
        )
    ),
    passes=none_or(items(record(**{"pass": TEXT}, text=TEXT))),
    costs=none_or(_COSTS),
)

_COST = record(instructions=none_or(COUNT), ram_bytes=none_or(COUNT), cycles=none_or(COUNT))
_EXPLAIN = record(
    arena_bytes=COUNT,
    macs=COUNT,
    predicted_instructions=none_or(COUNT),
    reordering=_REORDERING,
    fusions=items(
        record(
            taken=FLAG, groups=items(COUNT), operators=items(_OPERATOR), fused=none_or(_COST), apart=_COST, reason=TEXT
        )
    ),
    sliding=none_or(
        record(
            operators=items(
                joined(
                    _OPERATOR,
                    record(
                        rows=none_or(COUNT),
                        made_rows=none_or(COUNT),
                        new_rows=none_or(COUNT),
                        kept_rows=COUNT,
                        kept_bytes=COUNT,
                        macs=COUNT,
                        whole_macs=COUNT,
                        reason=none_or(TEXT),
                        running_sum=FLAG,
                    ),
                )
            )
        )
    ),
    tables=items(record(operator=_OPERATOR, kinds=items(TEXT), channels=COUNT, bytes=COUNT, in_layer=FLAG)),
    merged=items(record(operator=_OPERATOR, kinds=items(TEXT))),
    tiled=items(record(operator=_OPERATOR, kinds=items(TEXT), rows=COUNT, columns=COUNT, macs=COUNT, macs_again=COUNT)),
    advice=items(record(topic=TEXT, operator=TEXT, message=TEXT, hint=TEXT)),
)

_VALUE: Schema = {"type": ["number", "boolean"]}
_COMPARISON = record(
    oracle=TEXT,
    runs=COUNT,
    seed=COUNT,
    frames=none_or(COUNT),
    outputs=COUNT,
    mismatches=COUNT,
    first_mismatch=none_or(record(run=COUNT, tensor=TEXT, index=_SHAPE, expected=_VALUE, computed=_VALUE)),
    problems=items(TEXT),
    exact=FLAG,
    within_bound=FLAG,
    max_ulp=COUNT,
    max_step=COUNT,
    operator_bounds=table(record(ulp=COUNT, bound=COUNT)),
)
_VERIFY = record(
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
    command=TEXT,
)

_REGIONS = none_or(record(flash=COUNT, arena=COUNT, stack=COUNT, other=COUNT))
_USAGE = record(
    instructions=none_or(COUNT),
    instructions_per_mac=none_or(NUMBER),
    instructions_per_output=none_or(NUMBER),
    loaded_bytes=_REGIONS,
    stored_bytes=_REGIONS,
    bank_bytes=none_or(table(record(loaded=COUNT, stored=COUNT))),
    calls=none_or(COUNT),
    estimated_cycles=none_or(COUNT),
)
_PREDICTED = record(predicted_instructions=none_or(COUNT))
_BOTH_PREDICTED = joined(_PREDICTED, record(predicted_cycles=none_or(COUNT)))
_TOTALS = joined(
    _USAGE, _PREDICTED, _PREDICTED_CYCLES,
    record(
        estimated_ms=none_or(NUMBER),
        instructions_mean=none_or(COUNT), macs=COUNT, cycles_source=none_or(TEXT), arena_bytes=COUNT,
        state_bytes=COUNT, ram_bytes=none_or(COUNT), stack_bytes=none_or(COUNT),
    ),
)  # fmt: skip
_PROFILE = joined(
    _TOTALS,
    record(
        emulator=TEXT,
        compiler=TEXT,
        compiler_opt=TEXT,
        board_cycles=none_or(COUNT),
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
                            _OPERATOR,
                            _USAGE,
                            _BOTH_PREDICTED,
                            record(
                                kernel=TEXT,
                                macs=COUNT,
                                output_elements=COUNT,
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
_BOARD = joined(
    _CYCLES,
    _PREDICTED,
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
                record(name=TEXT, operators=items(joined(_OPERATOR, _COUNTED, record(kernel=TEXT, entry=TEXT)))),
            )
        ),
    ),
)

_RUN = record(
    notes=items(TEXT),
    emulator=TEXT,
    compiler=TEXT,
    compiler_opt=TEXT,
    runs=COUNT,
    instructions=none_or(COUNT),
    arena_bytes=COUNT,
    output=none_or(TEXT),
    outputs=items(joined(_PORT, record(values=items({"type": ["number", "boolean", "string"]})))),
)

_MEMORY = none_or({"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2})
_TARGET = record(
    name=TEXT, description=TEXT, cpu=none_or(TEXT), flags=items(TEXT), any_compiler=FLAG, fpu=FLAG,
    dsp=FLAG, mve=FLAG, cost_table=none_or(TEXT), float_costs=none_or(TEXT),
    cycle_table=none_or(TEXT), boards=items(_BOARD_TIMING),
    qemu_machine=none_or(TEXT), qemu_tick_ns=none_or(NUMBER), renode_cpu=none_or(TEXT), flash=_MEMORY, ram=_MEMORY,
    bulk=_MEMORY,
)  # fmt: skip
_KIND = record(
    kind=TEXT, summary=TEXT, rules=items(TEXT), kernels=items({"type": "array", "items": TEXT}), streams_rows=FLAG,
    in_place=FLAG, tested_cases=table(COUNT), dtypes=table(COUNT),
)  # fmt: skip
_CHECK = record(
    name=TEXT, purpose=TEXT, required=FLAG, good=FLAG, place=none_or(TEXT), version=none_or(TEXT),
    problem=none_or(TEXT), install=TEXT,
)  # fmt: skip

_COMPARED = record(model=TEXT, model_sha256=none_or(SHA256), target=TEXT, tinyfuse_version=TEXT)
_CHANGE = record(
    figure=TEXT, old=COUNT, new=COUNT, change=INTEGER, percent=none_or(NUMBER), limit=none_or(TEXT), grew=FLAG
)

_PROBLEM = record(message=TEXT, operator=none_or(TEXT), tensor=none_or(TEXT), hint=none_or(TEXT))

#: command -> what it prints where all is well
ANSWERS: dict[str, Schema] = {
    "report": joined(_ENVELOPE, _FIGURES, _PREDICTED_CYCLES, _REPORT),
    "gen": joined(_ENVELOPE, _FIGURES, _PREDICTED_CYCLES, record(files=table(SHA256), output=TEXT)),
    "explain": joined(_ENVELOPE, _EXPLAIN, _PREDICTED_CYCLES),
    "verify": joined(_ENVELOPE, _COMPARISON, _VERIFY),
    "profile": joined(_ENVELOPE, _PROFILE),
    "board-validate": joined(_ENVELOPE, _COMPARISON, _BOARD),
    "board-calibrate": joined(
        _VERSIONS,
        record(
            output=TEXT,
            target=TEXT,
            models=items(TEXT),
            cycles_per_instruction=NUMBER,
            kernels=items(
                record(entry=TEXT, groups=COUNT, cycles_per_instruction=NUMBER, mean_error=NUMBER, worst_error=NUMBER)
            ),
            warnings=items(TEXT),
        ),
    ),
    "board-estimate": joined(
        _ENVELOPE,
        _PREDICTED,
        record(
            costs=TEXT,
            about=table(TEXT),
            macs=COUNT,
            cycles=none_or(COUNT),
            groups=items(
                joined(
                    _PREDICTED,
                    record(
                        name=TEXT,
                        macs=COUNT,
                        cycles=none_or(COUNT),
                        operators=items(joined(_OPERATOR, record(kernel=TEXT, entry=TEXT, cycles=none_or(COUNT)))),
                    ),
                )
            ),
        ),
    ),
    "run": joined(_ENVELOPE, _RUN),
    "diff": joined(
        _VERSIONS, record(old=_COMPARED, new=_COMPARED, figures=items(_CHANGE), warnings=items(TEXT), ok=FLAG)
    ),
    "targets": joined(_VERSIONS, record(targets=items(_TARGET))),
    "operators": joined(_VERSIONS, record(operators=items(_KIND))),
    "devices": joined(
        _VERSIONS,
        record(
            devices=items(
                record(
                    name=TEXT, target=TEXT, ram=none_or(COUNT), flash=none_or(COUNT), pack=TEXT, memories=items(TEXT)
                )
            )
        ),
    ),
    "cmsis-nn": joined(
        _VERSIONS,
        record(path=TEXT, version=TEXT, found_by=TEXT, core_include=none_or(TEXT), lacks=items(TEXT)),
    ),
    "doctor": joined(_VERSIONS, record(checks=items(_CHECK))),
    "front-end": joined(
        _VERSIONS,
        record(
            output=TEXT,
            bytes=COUNT,
            samples=COUNT,
            sample_rate=COUNT,
            window_ms=NUMBER,
            stride_ms=NUMBER,
            channels=COUNT,
            frames=COUNT,
            low=NUMBER,
            high=NUMBER,
            scale=NUMBER,
            zero_point=INTEGER,
            shape=none_or(_SHAPE),
        ),
    ),
    "error": joined(
        _VERSIONS,
        record(error=optional(record(message=TEXT, exit_code=COUNT), model=TEXT, problems=items(_PROBLEM))),
    ),
}
