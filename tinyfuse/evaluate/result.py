"""What an evaluation gives back."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.evaluate.statistics import Score


@dataclass(frozen=True)
class ClassScore:
    """A class of the labels.

    name       from the labels or the model, else its number
    samples    with this label
    predicted  samples for which it is the best output
    precision  share of `predicted` that have this label; None where there are none
    recall     share of `samples` that are predicted so; None where there are none
    """

    name: str
    samples: int
    predicted: int
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Mistake:
    """A sample whose best output is not its label: their classes and scores, as real numbers."""

    sample: int
    label: int
    predicted: int
    label_score: float
    predicted_score: float


@dataclass(frozen=True)
class Threshold:
    """Effect of a threshold: only samples are answered whose best score reaches it; of two classes, class 1 is taken
    from it on, else class 0.

    answered   share of all samples
    accuracy   share of the answered that are right; None where none is answered
    hits, false_alarms   of two classes, shares of the samples of class 1, and of class 0, that are taken for class 1;
                         None for more classes, or where there are no such samples
    """

    threshold: float
    answered: float
    accuracy: float | None
    hits: float | None
    false_alarms: float | None


@dataclass(frozen=True)
class Evaluation:
    """What `Module.evaluate` found.

    metric       its name
    samples      of the data set
    score        of the generated code, with a 95 % confidence interval (Wilson's of a share)
    interpreter  of the model's file in `oracle`
    float_model  of the float model, None without one
    agreement    share of samples for which the generated code and the float model have the same best output; None
                 without a float model, or where the metric is of no classes
    exact        every output byte of every sample is the oracle's, who is an interpreter
    faulty       some byte differs, and the model calls no function of libm, whose floats may differ within bounds
                 (`verify` tells): a fault of tinyfuse
    differing    samples of which some output byte differs
    first_difference   the first of these, None where there is none
    unproven     where `oracle` is our own reference, which proves nothing
    passed       whether the score meets `at_least` and `at_most`
    classes      with topK, each class
    confusion    [label][predicted] of samples; empty with more than MAX_MATRIX classes
    mistakes     the worst MAX_MISTAKES: those whose best score is furthest above the label's
    thresholds   from the smallest best score to the largest
    saturated    numbers of the data beyond what an input can store
    notes, warnings    what was done to the data, and what is doubtful
    oracle, float_by, emulator, compiler, compiler_opt   who computed, with versions; float_by is None without a float
                 model
    """

    metric: str
    samples: int
    score: Score
    interpreter: Score
    float_model: Score | None
    agreement: float | None
    exact: bool
    faulty: bool
    differing: int
    first_difference: int | None
    unproven: bool
    passed: bool
    classes: tuple[ClassScore, ...]
    confusion: tuple[tuple[int, ...], ...]
    mistakes: tuple[Mistake, ...]
    thresholds: tuple[Threshold, ...]
    saturated: int
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    oracle: str
    float_by: str | None
    emulator: str
    compiler: str
    compiler_opt: str


#: classes up to which there is a confusion matrix; mistakes and thresholds that are told
MAX_MATRIX, MAX_MISTAKES, THRESHOLDS = 256, 24, 21
