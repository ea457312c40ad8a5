"""The answer of each command, key by key."""

from __future__ import annotations

from tinyfuse.report.answer import SCHEMA_VERSION
from tinyfuse.schema.evaluation_parts import EVALUATE
from tinyfuse.schema.measured_parts import BOARD, COMPARISON, PREDICTED, PROFILE, RUN, VERIFY
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
from tinyfuse.schema.plan_parts import (
    BOARD_TIMING,
    DEVICE,
    EXPLAIN,
    FIGURES,
    KNOWN,
    OPERATOR,
    PREDICTED_CYCLES,
    REPORT,
    SHAPE,
)

_VERSIONS = record(schema_version={"const": SCHEMA_VERSION}, tinyfuse_version=TEXT)
_ENVELOPE = joined(
    _VERSIONS,
    record(model=TEXT, model_sha256=none_or(SHA256), target=TEXT, options=options_schema(), warnings=items(TEXT)),
)
_MEMORY = none_or({"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2})
_TARGET = record(
    name=TEXT, description=TEXT, cpu=none_or(TEXT), flags=items(TEXT), any_compiler=FLAG, fpu=FLAG,
    dsp=FLAG, mve=FLAG, cost_table=none_or(TEXT), float_costs=none_or(TEXT),
    cycle_table=none_or(TEXT), boards=items(BOARD_TIMING),
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

_DECIBELS = none_or(NUMBER)
_LAYER = record(
    operator=TEXT, kind=TEXT, tensor=TEXT, float_tensor=TEXT, dtype=TEXT, snr_db=_DECIBELS, own_snr_db=_DECIBELS,
    output_snr_db=_DECIBELS, share=NUMBER, saturated=NUMBER, range_used=none_or(NUMBER), levels_used=none_or(COUNT),
    levels=none_or(COUNT), channel_spread=NUMBER,
    weights=none_or(record(smallest=NUMBER, largest=NUMBER, channels=COUNT, per_channel=FLAG, spread=NUMBER)),
    cause=TEXT, advice=TEXT,
    int16=none_or(
        record(
            layers=items(TEXT), instructions=none_or(INTEGER), ram_bytes=INTEGER, snr_db=_DECIBELS,
            int8_snr_db=_DECIBELS,
        )
    ),
)  # fmt: skip

_PROBLEM = record(message=TEXT, operator=none_or(TEXT), tensor=none_or(TEXT), hint=none_or(TEXT))

#: command -> what it prints where all is well
ANSWERS: dict[str, Schema] = {
    "report": joined(_ENVELOPE, FIGURES, KNOWN, PREDICTED_CYCLES, REPORT),
    "gen": joined(_ENVELOPE, FIGURES, KNOWN, PREDICTED_CYCLES, record(device=DEVICE, files=table(SHA256), output=TEXT)),
    "explain": joined(_ENVELOPE, EXPLAIN, KNOWN, PREDICTED_CYCLES),
    "verify": joined(_ENVELOPE, COMPARISON, VERIFY),
    "profile": joined(_ENVELOPE, PROFILE),
    "board-validate": joined(_ENVELOPE, COMPARISON, BOARD),
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
        PREDICTED,
        record(
            costs=TEXT,
            about=table(TEXT),
            macs=COUNT,
            cycles=none_or(COUNT),
            groups=items(
                joined(
                    PREDICTED,
                    record(
                        name=TEXT,
                        macs=COUNT,
                        cycles=none_or(COUNT),
                        operators=items(joined(OPERATOR, record(kernel=TEXT, entry=TEXT, cycles=none_or(COUNT)))),
                    ),
                )
            ),
        ),
    ),
    "run": joined(_ENVELOPE, RUN),
    "quantize": joined(
        _VERSIONS,
        record(
            model=TEXT,
            output=TEXT,
            output_sha256=SHA256,
            bytes=COUNT,
            scheme=TEXT,
            samples=COUNT,
            weights_read=COUNT,
            target=TEXT,
            predicted_instructions=none_or(COUNT),
            float_operators=items(record(operator=TEXT, kind=TEXT, tensor=TEXT, instructions=none_or(COUNT))),
            warnings=items(TEXT),
        ),
    ),
    "blame": joined(
        _VERSIONS,
        record(
            model=TEXT,
            model_sha256=SHA256,
            float_model=TEXT,
            target=TEXT,
            samples=COUNT,
            snr_db=none_or(NUMBER),
            layers=items(_LAYER),
            worst=items(COUNT),
            unmatched=items(TEXT),
            warnings=items(TEXT),
        ),
    ),
    "evaluate": joined(_ENVELOPE, EVALUATE),
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
            shape=none_or(SHAPE),
        ),
    ),
    "error": joined(
        _VERSIONS,
        record(error=optional(record(message=TEXT, exit_code=COUNT), model=TEXT, problems=items(_PROBLEM))),
    ),
}
