"""Parts of schemas for plans: figures, report and explanation."""

from __future__ import annotations

from tinyfuse.ir import ARITHMETIC, FORMATS
from tinyfuse.schema.parts import COUNT, FLAG, INTEGER, NUMBER, TEXT, items, merge_records, nullable, record, table

OPERATOR = record(kind=TEXT, index=INTEGER, name=TEXT)
SHAPE = items(COUNT)
PORT = record(
    name=TEXT, symbol=TEXT, shape=SHAPE, dtype=TEXT, scale=nullable(NUMBER), zero_point=nullable(INTEGER)
)  # fmt: skip
_REORDERING = nullable(
    record(operators_moved=COUNT, file_order_arena_bytes=COUNT, file_order_predicted_instructions=nullable(COUNT))
)
_LIMITS = items(record(search=TEXT, most=COUNT, of=TEXT))

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
    uncopied_arena_bytes=nullable(COUNT),
    code=nullable(record(name=TEXT, bytes=COUNT, kind={"enum": ["ram", "flash"]})),
)  # fmt: skip

BOARD_TIMING = record(
    name=TEXT, description=TEXT, mhz=nullable(NUMBER), wait_states=COUNT, line=COUNT, reads=NUMBER, fetch=NUMBER,
    source=TEXT, devices=TEXT, cycles_per_flash_byte=NUMBER,
)  # fmt: skip
_TIMING = nullable(BOARD_TIMING)
#: prediction of an inference without operators that cannot be predicted
KNOWN = record(
    known_instructions=nullable(COUNT), known_cycles=nullable(COUNT),
    not_predicted=items(record(group=COUNT, operator=TEXT, kernel=TEXT, reason=TEXT)),
)  # fmt: skip
PREDICTED_CYCLES = record(predicted_cycles=nullable(COUNT), predicted_ms=nullable(NUMBER), timing=_TIMING)

FIGURES = record(
    model_format={"enum": sorted(set(FORMATS.values()))},
    arithmetic={"enum": list(ARITHMETIC.values())},
    runtime={"enum": list(FORMATS)},
    macs=COUNT,
    model_macs=COUNT,
    predicted_instructions=nullable(COUNT),
    arena_bytes=COUNT,
    arena_lower_bound=COUNT,
    placement_optimal=FLAG,
    unfused_arena_bytes=COUNT,
    state_bytes=COUNT,
    states=items(
        record(name=TEXT, offset=COUNT, bytes=COUNT, dtype=TEXT, shape=SHAPE, ring=FLAG, updated_in_place=FLAG)
    ),
    weight_bytes=COUNT,
    memory=nullable(_MEMORY_BANKS),
    compressed=nullable(
        record(
            bytes_spared=INTEGER,
            instructions_added=nullable(INTEGER),
            layers=items(
                record(
                    operator=TEXT,
                    weight_bytes=COUNT,
                    index_bytes=COUNT,
                    table_bytes=COUNT,
                    bytes_spared=INTEGER,
                    instructions_added=nullable(INTEGER),
                )
            ),
            packed=items(record(operator=TEXT, reason=TEXT)),
        )
    ),
    code_bytes=COUNT,
    code_bytes_measured=FLAG,
    helper_bytes=nullable(COUNT),
    estimated_code_bytes=COUNT,
    rewrites=items(
        # savings may be negative
        record(**{"pass": TEXT}, what=TEXT, macs_saved=INTEGER, weight_bytes_saved=INTEGER, copied_bytes_saved=INTEGER)
    ),
    reordering=_REORDERING,
    limits=_LIMITS,
    inputs=items(PORT),
    outputs=items(PORT),
    window=nullable(
        record(
            input=TEXT,
            axis=COUNT,
            frames=COUNT,
            step=COUNT,
            steps_to_fill=COUNT,
            rows=nullable(COUNT),
            whole_macs=COUNT,
            whole_arena_bytes=nullable(COUNT),
            whole_state_bytes=nullable(COUNT),
            whole_predicted_instructions=nullable(COUNT),
        )
    ),
    longest_step=nullable(record(predicted_instructions=nullable(COUNT), group=COUNT, operator=TEXT)),
    fed_input=nullable(TEXT),
    groups=items(
        record(
            name=TEXT,
            operators=items(OPERATOR),
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
            instructions=nullable(COUNT),
            terms=nullable(items(_TERM)),
            share=NUMBER,
            loop=items(_TERM),
            code_bytes=nullable(COUNT),
            functions=items(TEXT),
        )
    ),
    code=record(bytes=COUNT, module_bytes=COUNT, functions=items(record(name=TEXT, bytes=COUNT)), guessed_bytes=COUNT),
)
DEVICE = nullable(record(name=TEXT, ram=COUNT, flash=COUNT))
#: plans that --measure ran
MEASURED = nullable(
    items(
        record(
            options=TEXT,
            arena_bytes=COUNT,
            state_bytes=COUNT,
            stack_bytes=COUNT,
            code_bytes=COUNT,
            predicted_instructions=nullable(COUNT),
            instructions=COUNT,
            estimated_cycles=nullable(COUNT),
            chosen=FLAG,
        )
    )
)
REPORT = record(
    device=DEVICE,
    measured=MEASURED,
    pareto=nullable(
        items(
            record(
                arena_bytes=COUNT,
                state_bytes=COUNT,
                macs=COUNT,
                predicted_instructions=nullable(COUNT),
                predicted_cycles=nullable(COUNT),
                slower=NUMBER,
                groups=COUNT,
                optimize=items(TEXT),
                options=items(TEXT),
            )
        )
    ),
    passes=nullable(items(record(**{"pass": TEXT}, text=TEXT))),
    costs=nullable(_COSTS),
)

_COST = record(instructions=nullable(COUNT), ram_bytes=nullable(COUNT), cycles=nullable(COUNT))
EXPLAIN = record(
    arena_bytes=COUNT,
    macs=COUNT,
    predicted_instructions=nullable(COUNT),
    reordering=_REORDERING,
    limits=_LIMITS,
    fusions=items(
        record(
            taken=FLAG, groups=items(COUNT), operators=items(OPERATOR), fused=nullable(_COST), apart=_COST, reason=TEXT
        )
    ),
    sliding=nullable(
        record(
            operators=items(
                merge_records(
                    OPERATOR,
                    record(
                        rows=nullable(COUNT),
                        made_rows=nullable(COUNT),
                        new_rows=nullable(COUNT),
                        kept_rows=COUNT,
                        kept_bytes=COUNT,
                        macs=COUNT,
                        whole_macs=COUNT,
                        reason=nullable(TEXT),
                        running_sum=FLAG,
                    ),
                )
            )
        )
    ),
    tables=items(record(operator=OPERATOR, kinds=items(TEXT), channels=COUNT, bytes=COUNT, in_layer=FLAG)),
    merged=items(record(operator=OPERATOR, kinds=items(TEXT))),
    tiled=items(record(operator=OPERATOR, kinds=items(TEXT), rows=COUNT, columns=COUNT, macs=COUNT, macs_again=COUNT)),
    again=items(record(operator=OPERATOR, kinds=items(TEXT), macs=COUNT)),
    advice=items(record(topic=TEXT, operator=TEXT, message=TEXT, hint=TEXT)),
)
