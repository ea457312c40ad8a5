"""Schemas of an evaluation over a data set, and of a choice of bits by it."""

from __future__ import annotations

from tinyfuse.schema.parts import COUNT, FLAG, NUMBER, SHA256, TEXT, items, nullable, record

_SCORE = record(value=NUMBER, low=nullable(NUMBER), high=nullable(NUMBER))
EVALUATE = record(
    metric=TEXT,
    samples=COUNT,
    score=_SCORE,
    interpreter=_SCORE,
    float_model=nullable(_SCORE),
    agreement=nullable(NUMBER),
    exact=FLAG,
    faulty=FLAG,
    differing=COUNT,
    first_difference=nullable(COUNT),
    unproven=FLAG,
    passed=FLAG,
    classes=items(
        record(name=TEXT, samples=COUNT, predicted=COUNT, precision=nullable(NUMBER), recall=nullable(NUMBER))
    ),
    confusion=items(items(COUNT)),
    mistakes=items(record(sample=COUNT, label=COUNT, predicted=COUNT, label_score=NUMBER, predicted_score=NUMBER)),
    thresholds=items(
        record(
            threshold=NUMBER,
            answered=NUMBER,
            accuracy=nullable(NUMBER),
            hits=nullable(NUMBER),
            false_alarms=nullable(NUMBER),
        )
    ),
    saturated=COUNT,
    notes=items(TEXT),
    oracle=TEXT,
    float_by=nullable(TEXT),
    emulator=TEXT,
    compiler=TEXT,
    compiler_opt=TEXT,
    data=items(TEXT),
    labels=TEXT,
    float=nullable(TEXT),
    page=nullable(TEXT),
    command=TEXT,
)

#: plans of `quantize --accuracy-loss`
SEARCH = record(
    metric=TEXT,
    float_score=_SCORE,
    test_samples=COUNT,
    plans=items(
        record(
            layers=items(record(name=TEXT, scheme=TEXT)),
            score=_SCORE,
            loss=NUMBER,
            ram_bytes=COUNT,
            instructions=nullable(COUNT),
            flash_bytes=COUNT,
            exact=FLAG,
            exceeds=items(TEXT),
            bytes=COUNT,
            sha256=SHA256,
        )
    ),
    chosen=nullable(COUNT),
    front=items(COUNT),
    closest=items(COUNT),
)
