"""Schema of an evaluation over a data set."""

from __future__ import annotations

from tinyfuse.schema.parts import COUNT, FLAG, NUMBER, TEXT, items, none_or, record

_SCORE = record(value=NUMBER, low=none_or(NUMBER), high=none_or(NUMBER))
EVALUATE = record(
    metric=TEXT,
    samples=COUNT,
    score=_SCORE,
    interpreter=_SCORE,
    float_model=none_or(_SCORE),
    agreement=none_or(NUMBER),
    exact=FLAG,
    faulty=FLAG,
    differing=COUNT,
    first_difference=none_or(COUNT),
    unproven=FLAG,
    passed=FLAG,
    classes=items(record(name=TEXT, samples=COUNT, predicted=COUNT, precision=none_or(NUMBER), recall=none_or(NUMBER))),
    confusion=items(items(COUNT)),
    mistakes=items(record(sample=COUNT, label=COUNT, predicted=COUNT, label_score=NUMBER, predicted_score=NUMBER)),
    thresholds=items(
        record(
            threshold=NUMBER,
            answered=NUMBER,
            accuracy=none_or(NUMBER),
            hits=none_or(NUMBER),
            false_alarms=none_or(NUMBER),
        )
    ),
    saturated=COUNT,
    notes=items(TEXT),
    oracle=TEXT,
    float_by=none_or(TEXT),
    emulator=TEXT,
    compiler=TEXT,
    compiler_opt=TEXT,
    data=items(TEXT),
    labels=TEXT,
    float=none_or(TEXT),
    page=none_or(TEXT),
    command=TEXT,
)
