"""Results of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.evaluate.statistics import Score


@dataclass(frozen=True)
class ClassScore:
    """Figures of a class.

    name       from the labels or the model, else its number
    samples    number of samples with this label
    predicted  number of samples for which it is the best class
    precision  share of the predicted samples that have this label; None where there are none
    recall     share of the samples with this label that are predicted; None where there are none
    """

    name: str
    samples: int
    predicted: int
    precision: float | None
    recall: float | None


@dataclass(frozen=True)
class Mistake:
    """A sample whose best class is not its label: both classes, and their scores as real numbers."""

    sample: int
    label: int
    predicted: int
    label_score: float
    predicted_score: float


@dataclass(frozen=True)
class Threshold:
    """Effect of a threshold. With two classes, class 1 is predicted if its score reaches the threshold, otherwise class
    0. With more, only samples whose best score reaches it are answered.

    answered   share of all samples
    accuracy   share of the answered samples that are right; None if none is answered
    hits, false_alarms   with two classes: share of class 1's samples, and of class 0's, for which class 1 is predicted;
                         None with more classes, or without such samples
    """

    threshold: float
    answered: float
    accuracy: float | None
    hits: float | None
    false_alarms: float | None


@dataclass(frozen=True)
class Evaluation:
    """Result of `Module.evaluate`.

    metric       name of the metric
    samples      number of samples
    score        the metric of the generated code
    interpreter  the metric of the model's file in the interpreter `oracle`
    float_model  the metric of the float model; None without one
    agreement    share of samples for which the generated code and the float model have the same best class; None
                 without a float model, and for metrics without classes
    exact        no output byte of any sample differs from the interpreter's
    faulty       some byte differs, and the model calls no function of libm: a fault of tinyfuse. Floats of libm may
                 differ within bounds, which `verify` checks
    differing    number of samples with a byte that differs
    first_difference   the first of these samples; None where there is none
    unproven     nothing differs, but `oracle` is our own reference, which proves nothing
    passed       the score meets `at_least` and `at_most`
    classes      figures of each class; () for other metrics than topK
    confusion    numbers of samples by [label][predicted]; () without classes, and for more than 256
    mistakes     at most 24 mistakes, first the one whose best score is furthest above the label's
    thresholds   21 thresholds, from the smallest score to the largest; () without classes
    saturated    numbers of the data that became the smallest or largest value of their input
    notes, warnings   sentences: conversions of the data; doubts about the result
    oracle, float_by, emulator, compiler, compiler_opt   tools of the computation, with versions; float_by is None
                 without a float model, emulator is "host" for this machine
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


#: the most classes with a confusion matrix; numbers of mistakes and of thresholds in a result
MAX_MATRIX, MAX_MISTAKES, THRESHOLDS = 256, 24, 21
