"""Metrics and their intervals, against formulas written another way."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tinyfuse.data.labels import Labels
from tinyfuse.errors import UsageError
from tinyfuse.evaluate.classes import class_figures, confusion_matrix, threshold_figures, worst_mistakes
from tinyfuse.evaluate.metrics import TopK, measure_of, user_function
from tinyfuse.evaluate.statistics import average_precision, mean, roc_area, share

FEW = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])


def scored(name, outputs, labels, batch=3, function=None):
    measure = measure_of(name, Labels(np.asarray(labels)), outputs[0].size, function)
    metric = measure.make()
    for start in range(0, len(outputs), batch):
        part = slice(start, start + batch)
        metric.add({"y": outputs[part]}, "y", measure.labels[part])
    return metric


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_its_share_and_solves_its_equation(counts) -> None:
    correct, total = counts
    found = share(correct, total)
    assert 0 <= found.low <= found.value <= found.high <= 1
    for end in (found.low, found.high):  # |share - end| is 1.96 standard deviations of a true share `end`
        if 0 < end < 1:
            deviation = math.sqrt(end * (1 - end) / total)
            assert math.isclose(abs(found.value - end), 1.959963984540054 * deviation, rel_tol=1e-9, abs_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float32, st.integers(2, 14), elements=FEW), st.data())
def test_areas_and_precisions_are_those_of_their_definitions(scores, data) -> None:
    positive = data.draw(hnp.arrays(np.bool_, len(scores)).filter(lambda p: p.any() and not p.all()))
    pairs = [(a, b) for a, b in itertools.product(scores[positive], scores[~positive])]
    wanted = sum((a > b) + 0.5 * (a == b) for a, b in pairs) / len(pairs)
    found = roc_area(scores, positive)
    assert math.isclose(found.value, wanted) and found.low <= found.value + 1e-12 and found.value <= found.high + 1e-12
    total, recall = 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        taken = scores >= threshold
        now = (taken & positive).sum() / positive.sum()
        total, recall = total + (now - recall) * (taken & positive).sum() / taken.sum(), now
    assert math.isclose(average_precision(scores, positive), total)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(3, 5)), elements=FEW), st.integers(1, 2), st.data()
)
def test_top_k_ranks_as_argmax_does(outputs, k, data) -> None:
    labels = np.array(
        data.draw(st.lists(st.integers(0, outputs.shape[1] - 1), min_size=len(outputs), max_size=len(outputs)))
    )
    found = scored(f"top{k}", outputs, labels)
    ranked = [sorted(range(outputs.shape[1]), key=lambda c, row=row: (-row[c], c)) for row in outputs]
    wanted = sum(label in order[:k] for label, order in zip(labels, ranked, strict=True)) / len(labels)
    assert found.score().value == wanted
    assert found.predicted.tolist() == [order[0] for order in ranked] == outputs.argmax(axis=1).tolist()


@given(hnp.arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 3)), st.data())
def test_classes_add_up(labels, data) -> None:
    predicted = data.draw(hnp.arrays(np.int64, len(labels), elements=st.integers(0, 3)))
    matrix = np.array(confusion_matrix(labels, predicted, 4))
    assert matrix.sum() == len(labels)
    for number, found in enumerate(class_figures(labels, predicted, tuple("abcd"))):
        assert (found.name, found.samples, found.predicted) == (
            "abcd"[number],
            matrix[number].sum(),
            matrix[:, number].sum(),
        )
        assert found.recall == (matrix[number, number] / found.samples if found.samples else None)
        assert found.precision == (matrix[number, number] / found.predicted if found.predicted else None)


def test_mistakes_and_thresholds() -> None:
    outputs = np.array([[0.9, 0.1, 0], [0.2, 0.8, 0], [0.1, 0.5, 0.4], [0, 0.1, 0.9]], np.float32)
    labels = np.array([0, 0, 2, 1])
    found = scored("top1", outputs, labels)
    assert isinstance(found, TopK)
    assert [(m.sample, m.label, m.predicted) for m in worst_mistakes(labels, found)] == [
        (3, 1, 2),
        (1, 0, 1),
        (2, 2, 1),
    ]
    thresholds = threshold_figures(labels, found, 3)
    assert (thresholds[0].answered, thresholds[0].accuracy) == (1.0, 0.25)
    assert (thresholds[-1].answered, thresholds[-1].accuracy, thresholds[-1].hits) == (0.5, 0.5, None)


def test_one_number_is_the_score_of_class_1() -> None:
    outputs = np.array([[0.5], [0.4999], [0.9], [0.1]], np.float32)
    labels = np.array([1, 0, 0, 0])
    found = scored("top1", outputs, labels)
    assert found.predicted.tolist() == [1, 0, 1, 0] and found.score().value == 0.75
    thresholds = threshold_figures(labels, found, 2)
    assert [(t.hits, t.false_alarms) for t in (thresholds[0], thresholds[-1])] == [(1.0, 1.0), (0.0, 1 / 3)]
    assert scored("auc", outputs, labels).score().value == roc_area(outputs[:, 0], labels == 1).value


def test_errors_and_means() -> None:
    outputs = np.array([[1, 2], [3, 4], [5, 9]], np.float32)
    found = scored("mae", outputs, [[1, 2], [3, 5], [5, 5]]).score()
    assert found.value == pytest.approx((0 + 0.5 + 2) / 3)
    assert found == mean(np.array([0, 0.5, 2]))
    assert (found.low + found.high) / 2 == pytest.approx(found.value) and mean(np.array([3.0])).low is None


def test_several_classes_a_sample() -> None:
    outputs = np.array([[0.9, 0.2, 0.5], [0.1, 0.8, 0.6], [0.3, 0.3, 0.1]], np.float32)
    flags = np.array([[1, 0, 1], [0, 1, 1], [1, 0, 0]])
    wanted = np.mean([average_precision(outputs[:, c], flags[:, c] > 0) for c in range(3)])
    assert scored("map", outputs, flags).score().value == wanted
    assert scored("auc", outputs, flags).score().value == 1.0
    assert scored("top1", outputs, np.eye(3, dtype=int)).score().value == 2 / 3  # one-hot rows are classes


@pytest.mark.parametrize(
    "name, labels, told",
    [
        ("top1", [0, 5], "the label of sample 1 is class 5, but the output has 3 classes, 0 to 2"),
        ("top1", [0.5, 1.5], "class numbers from 0 on"), ("top1", [-1, 0], "class numbers from 0 on"),
        ("top3", [0, 1], "every label is among the best 3"), ("top0", [0, 1], "not a metric"), ("f1", [0, 1], "not a metric"),
        ("mae", [1, 2], "1 numbers per label, but the output has 3"), ("auc", [1, 1], "all labels are of one class"),
        ("map", [[0, 0, 0], [0, 0, 0]], "no sample has a class"), ("map", [[0, 2, 0], [0, 0, 0]], "a row of 3 zeros and ones"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit(name, labels, told) -> None:
    with pytest.raises(UsageError, match=told):
        measure_of(name, Labels(np.asarray(labels)), 3)


def test_functions_of_users(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text(
        "import numpy as np\n"
        "def number(outputs, labels): return float((outputs['y'].argmax(1) == labels).mean())\n"
        "def each(outputs, labels): return outputs['y'][:, 0] - labels\n"
        "def wrong(outputs, labels): return outputs['no']\n"
        "def nan(outputs, labels): return float('nan')\n"
        "def shape(outputs, labels): return [1, 2, 3, 4]\n"
        "value = 3\n"
    )
    outputs = np.array([[1, 2], [4, 3], [5, 9]], np.float32)
    labels = [1, 1, 1]

    def score(name):
        return scored(f"m.py:{name}", outputs, labels, function=user_function(f"m.py:{name}")).score()

    assert score("number").value == 2 / 3 and score("number").low is None
    assert score("each") == mean(np.array([0.0, 3, 4]))
    for name, told in (("wrong", r"KeyError: 'no' \(line 4\)"), ("nan", "NaN or infinity"), ("shape", r"shape \[4\]")):
        with pytest.raises(UsageError, match=told):
            score(name)
    Path("broken.py").write_text("1 +\n")
    for name, told in (("m.py:value", "no function"), ("no.py:f", "can't read"), ("broken.py:f", "SyntaxError")):
        with pytest.raises(UsageError, match=told):
            user_function(name)
    assert user_function("top1") is None
