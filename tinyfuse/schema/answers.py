"""Schema of each command's answer."""

from __future__ import annotations

from tinyfuse.report.answer import SCHEMA_VERSION
from tinyfuse.schema.evaluation_parts import EVALUATE, SEARCH
from tinyfuse.schema.measured_parts import BOARD, COMPARISON, PREDICTED, PROFILE, RUN, VERIFY
from tinyfuse.schema.parts import (
    COUNT,
    FLAG,
    INTEGER,
    NUMBER,
    SHA256,
    TEXT,
    Schema,
    add_optional,
    items,
    merge_records,
    nullable,
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
    MEASURED,
    OPERATOR,
    PREDICTED_CYCLES,
    REPORT,
    SHAPE,
)

_VERSIONS = record(schema_version={"const": SCHEMA_VERSION}, tinyfuse_version=TEXT)
_ENVELOPE = merge_records(
    _VERSIONS,
    record(model=TEXT, model_sha256=nullable(SHA256), target=TEXT, options=options_schema(), warnings=items(TEXT)),
)
_MEMORY = nullable({"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2})
_TARGET = record(
    name=TEXT, description=TEXT, cpu=nullable(TEXT), flags=items(TEXT), any_compiler=FLAG, fpu=FLAG,
    dsp=FLAG, mve=FLAG, dual_issue=FLAG, cost_table=nullable(TEXT), float_costs=nullable(TEXT),
    cycle_table=nullable(TEXT), boards=items(BOARD_TIMING),
    qemu_machine=nullable(TEXT), qemu_tick_ns=nullable(NUMBER), renode_cpu=nullable(TEXT), flash=_MEMORY, ram=_MEMORY,
    bulk=_MEMORY,
)  # fmt: skip
_KIND = record(
    kind=TEXT, summary=TEXT, rules=items(TEXT), kernels=items({"type": "array", "items": TEXT}), streams_rows=FLAG,
    in_place=FLAG, tested_cases=table(COUNT), dtypes=table(COUNT),
)  # fmt: skip
_CHECK = record(
    name=TEXT, purpose=TEXT, required=FLAG, good=FLAG, place=nullable(TEXT), version=nullable(TEXT),
    problem=nullable(TEXT), install=TEXT,
)  # fmt: skip

_COMPARED = record(model=TEXT, model_sha256=nullable(SHA256), target=TEXT, tinyfuse_version=TEXT)
_CHANGE = record(
    figure=TEXT, old=COUNT, new=COUNT, change=INTEGER, percent=nullable(NUMBER), limit=nullable(TEXT), grew=FLAG
)

_DECIBELS = nullable(NUMBER)
_LAYER = record(
    operator=TEXT, kind=TEXT, tensor=TEXT, float_tensor=TEXT, dtype=TEXT, snr_db=_DECIBELS, own_snr_db=_DECIBELS,
    output_snr_db=_DECIBELS, share=NUMBER, saturated=NUMBER, range_used=nullable(NUMBER), levels_used=nullable(COUNT),
    levels=nullable(COUNT), channel_spread=NUMBER,
    weights=nullable(record(smallest=NUMBER, largest=NUMBER, channels=COUNT, per_channel=FLAG, spread=NUMBER)),
    cause=TEXT, advice=TEXT, due_to=nullable(TEXT),
    int16=nullable(
        record(
            layers=items(TEXT), instructions=nullable(INTEGER), ram_bytes=INTEGER, snr_db=_DECIBELS,
            int8_snr_db=_DECIBELS,
        )
    ),
)  # fmt: skip

_PROBLEM = record(message=TEXT, operator=nullable(TEXT), tensor=nullable(TEXT), hint=nullable(TEXT))

#: command -> schema of its answer if it succeeds; "error" -> schema of the answer if it fails
ANSWERS: dict[str, Schema] = {
    "report": merge_records(_ENVELOPE, FIGURES, KNOWN, PREDICTED_CYCLES, REPORT),
    "gen": merge_records(
        _ENVELOPE,
        FIGURES,
        KNOWN,
        PREDICTED_CYCLES,
        record(device=DEVICE, files=table(SHA256), output=TEXT, evidence=nullable(TEXT), measured=MEASURED),
    ),
    "explain": merge_records(_ENVELOPE, EXPLAIN, KNOWN, PREDICTED_CYCLES),
    "verify": merge_records(_ENVELOPE, COMPARISON, VERIFY),
    "profile": merge_records(_ENVELOPE, PROFILE),
    "board-validate": merge_records(_ENVELOPE, COMPARISON, BOARD),
    "board-calibrate": merge_records(
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
    "board-estimate": merge_records(
        _ENVELOPE,
        PREDICTED,
        record(
            costs=TEXT,
            about=table(TEXT),
            macs=COUNT,
            cycles=nullable(COUNT),
            groups=items(
                merge_records(
                    PREDICTED,
                    record(
                        name=TEXT,
                        macs=COUNT,
                        cycles=nullable(COUNT),
                        operators=items(
                            merge_records(OPERATOR, record(kernel=TEXT, entry=TEXT, cycles=nullable(COUNT)))
                        ),
                    ),
                )
            ),
        ),
    ),
    "run": merge_records(_ENVELOPE, RUN),
    "quantize": merge_records(
        _VERSIONS,
        record(
            model=TEXT,
            output=nullable(TEXT),
            output_sha256=nullable(SHA256),
            bytes=COUNT,
            scheme=TEXT,
            samples=COUNT,
            weights_read=COUNT,
            target=TEXT,
            predicted_instructions=nullable(COUNT),
            float_operators=items(record(operator=TEXT, kind=TEXT, tensor=TEXT, instructions=nullable(COUNT))),
            search=nullable(SEARCH),
            warnings=items(TEXT),
        ),
    ),
    "blame": merge_records(
        _VERSIONS,
        record(
            model=TEXT,
            model_sha256=SHA256,
            float_model=TEXT,
            target=TEXT,
            samples=COUNT,
            snr_db=nullable(NUMBER),
            layers=items(_LAYER),
            worst=items(COUNT),
            unmatched=items(TEXT),
            warnings=items(TEXT),
        ),
    ),
    "evaluate": merge_records(_ENVELOPE, EVALUATE),
    "diff": merge_records(
        _VERSIONS, record(old=_COMPARED, new=_COMPARED, figures=items(_CHANGE), warnings=items(TEXT), ok=FLAG)
    ),
    "targets": merge_records(_VERSIONS, record(targets=items(_TARGET))),
    "operators": merge_records(_VERSIONS, record(operators=items(_KIND))),
    "devices": merge_records(
        _VERSIONS,
        record(
            devices=items(
                record(
                    name=TEXT, target=TEXT, ram=nullable(COUNT), flash=nullable(COUNT), pack=TEXT, memories=items(TEXT)
                )
            )
        ),
    ),
    "cmsis-nn": merge_records(
        _VERSIONS,
        record(path=TEXT, version=TEXT, found_by=TEXT, core_include=nullable(TEXT), lacks=items(TEXT)),
    ),
    "doctor": merge_records(_VERSIONS, record(checks=items(_CHECK))),
    "front-end": merge_records(
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
            shape=nullable(SHAPE),
        ),
    ),
    "error": merge_records(
        _VERSIONS,
        record(error=add_optional(record(message=TEXT, exit_code=COUNT), model=TEXT, problems=items(_PROBLEM))),
    ),
}
