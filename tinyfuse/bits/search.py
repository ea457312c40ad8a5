"""Searches the bits of each layer: int8, int16 where a layer costs accuracy, int4 weights where flash is short."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest

import numpy as np

from tinyfuse.blame.blame import Blame, blame_layers
from tinyfuse.blame.int16 import with_readers
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.evaluate.metrics import ERRORS, is_share
from tinyfuse.evaluate.result import Evaluation
from tinyfuse.evaluate.statistics import Score
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Array, Graph
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress
from tinyfuse.quantization.convert import FloatModel
from tinyfuse.quantization.recipes import recipe
from tinyfuse.quantization.session import Quantizer, Refused
from tinyfuse.targets import Target

#: plans that are evaluated at most
MAX_PLANS = 20
#: steps in which layers are raised until all are int16
_STEPS = 10

Batches = Callable[[], Iterator[Mapping[str, Array]]]
#: evaluates the module of a plan and of the .tflite file's bytes that it was made of
Evaluate = Callable[[Plan, bytes], Evaluation]
#: (name of an output tensor, scheme)
Layers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Goal:
    """Limits of a plan; None where there is none.

    accuracy_loss        percentage points if the metric is a share, otherwise the metric's unit
    max_ram, max_flash   bytes
    max_instructions     predicted instructions of an inference
    """

    accuracy_loss: float
    max_ram: int | None = None
    max_flash: int | None = None
    max_instructions: int | None = None


@dataclass(frozen=True)
class BitPlan:
    """Bits of each layer, with measured accuracy and predicted costs.

    layers        (name of an output tensor, scheme) of each layer that is not int8.
    data          bytes of the .tflite file.
    score, loss   metric of the generated code, and how much worse it is than the float model's, in Goal's unit.
    ram_bytes     arena and state.
    instructions  predicted for an inference; None if a kernel was not measured.
    flash_bytes   weights and estimated code.
    exact         every output byte of the evaluation equals the interpreter's.
    exceeds       exceeded limits, by the names in Goal.
    """

    layers: Layers
    data: bytes
    score: Score
    loss: float
    ram_bytes: int
    instructions: int | None
    flash_bytes: int
    exact: bool
    exceeds: tuple[str, ...]


@dataclass(frozen=True)
class ChosenBits:
    """Result of `tinyfuse.choose_bits`.

    metric       name of the metric.
    float_score  score of the float model.
    samples      number of evaluated samples.
    plans        all evaluated plans, in the order of evaluation.
    chosen       index of the plan with the fewest instructions that exceeds no limit; None if every plan exceeds one.
    front        indexes of the plans that no other plan beats in score, RAM, instructions and flash together.
    closest      indexes of the three plans that exceed the fewest limits, those with the least loss first.
    warnings     sentences.
    """

    metric: str
    float_score: Score
    samples: int
    plans: tuple[BitPlan, ...]
    chosen: int | None
    front: tuple[int, ...]
    closest: tuple[int, ...]
    warnings: tuple[str, ...]

    @property
    def data(self) -> bytes | None:
        """Bytes of the chosen .tflite file; None if no plan was chosen."""
        return None if self.chosen is None else self.plans[self.chosen].data

    def with_warnings(self, more: Iterable[str]) -> ChosenBits:
        """Return a copy with `more` warnings before its own."""
        return replace(self, warnings=(*more, *self.warnings))


@dataclass(frozen=True)
class _Priced:
    """A plan before its evaluation; `exceeds` are limits of costs."""

    plan: Plan
    graph: Graph
    data: bytes
    instructions: int | None
    flash_bytes: int
    exceeds: tuple[str, ...]


class BitSearch:
    """Search among the plans of a float model whose calibration is done.

    batches    calibration data, of which blame takes `count` samples
    float_io   inputs and outputs stay float32
    pinned     layers whose scheme the user gave
    evaluate   measures a plan; it gives the float model's score too
    """

    def __init__(
        self, model: FloatModel, quantizer: Quantizer, batches: Batches, count: int, float_io: bool, pinned: Layers,
        target: Target, goal: Goal, evaluate: Evaluate, progress: Progress,
    ):  # fmt: skip
        self._model, self._quantizer, self._batches, self._count = model, quantizer, batches, count
        self._float_io, self._pinned, self._target, self._goal = float_io, pinned, target, goal
        self._evaluate, self._progress = evaluate, progress
        self._options = Options(name="model", max_ram=goal.max_ram, max_flash=goal.max_flash)
        self._priced: dict[Layers, _Priced | None] = {}
        self._plans: dict[Layers, BitPlan] = {}
        self._first: Evaluation | None = None
        self._warnings: list[str] = []
        first = self._price((), ())
        if first is None:
            raise UsageError(f"{model.path}: its int8 form can't be compiled; `tinyfuse quantize` without "
                             "--accuracy-loss says why")  # fmt: skip
        if goal.max_instructions is not None and first.instructions is None:
            raise UsageError(f"--max-instructions: a kernel of this model was not measured on {target.name}")
        self._int8 = first.graph

    def run(self, explore: bool) -> ChosenBits:
        """Search for a plan within all limits. `explore`: evaluate more plans than that needs, for the Pareto front."""
        raised = self._raise_until_accurate()
        self._drop_idle(raised)
        if explore:
            self._explore()
        assert self._first is not None
        assert self._first.float_model is not None
        plans = tuple(self._plans.values())
        if not plans:
            raise UsageError("no plan computes what the interpreter does: a fault of tinyfuse; please report it")
        within = [place for place, plan in enumerate(plans) if not plan.exceeds]
        order = sorted(range(len(plans)), key=lambda i: (len(plans[i].exceeds), plans[i].loss))
        return ChosenBits(
            metric=self._first.metric,
            float_score=self._first.float_model,
            samples=self._first.samples,
            plans=plans,
            chosen=min(within, key=lambda i: _costs(plans[i]), default=None),
            front=tuple(i for i, plan in enumerate(plans) if not any(_beats(other, plan) for other in plans)),
            closest=tuple(order[:3]),
            warnings=tuple(dict.fromkeys([*self._first.warnings, *self._warnings])),
        )

    # --- the walk --------------------------------------------------------------------------------

    def _raise_until_accurate(self) -> list[str]:
        """Raise layers to int16, those with the largest error first, until the loss is met; return their names. A layer
        is skipped if its int16 exceeds a limit of costs."""
        raised, waiting = list[str](), list[str]()
        if not self._is_accurate(raised):
            waiting += self._raising
        step = -(-len(waiting) // _STEPS)
        while waiting and len(self._plans) < MAX_PLANS:
            before = len(raised)
            while waiting and len(raised) < before + step:
                more = [*raised, waiting.pop(0)]
                priced = self._price(more, self._lowered_to_fit(more))
                if priced is not None and not priced.exceeds:
                    raised = more
            if self._is_accurate(raised):
                break
        return raised

    def _is_accurate(self, raised: Sequence[str]) -> bool:
        plan = self._measure(raised, self._lowered_to_fit(raised))
        return plan is not None and "accuracy_loss" not in plan.exceeds

    def _drop_idle(self, raised: list[str]) -> None:
        """Make raised layers int8 again if the accuracy loss stays within its limit without them; the layer with the
        least error goes first."""
        if not self._is_accurate(raised):
            return
        for name in reversed(raised):
            others = [each for each in raised if each != name]
            if len(self._plans) < MAX_PLANS and self._is_accurate(others):
                raised = others

    def _explore(self) -> None:
        """Evaluate more plans: int16 for prefixes of the order of raising, int4 for prefixes of the order of
        lowering."""
        orders = [_prefixes(order, MAX_PLANS // 2) for order in (self._raising, self._lowering)]
        for raised, lowered in zip_longest(*orders, fillvalue=list[str]()):
            for choice in ((raised, list[str]()), (list[str](), lowered)):
                if len(self._plans) < MAX_PLANS:
                    self._measure(*choice)

    def _lowered_to_fit(self, raised: Sequence[str]) -> list[str]:
        """Return the layers that get int4 weights: the shortest prefix of the order of lowering with which the model
        fits the flash."""
        lowered = list[str]()
        priced = self._price(raised, lowered)
        if priced is None or "max_flash" not in priced.exceeds:
            return lowered
        for name in self._lowering:
            lowered.append(name)
            priced = self._price(raised, lowered)
            if priced is not None and "max_flash" not in priced.exceeds:
                break
        return lowered

    # --- orders ----------------------------------------------------------------------------------

    @cached_property
    def _raising(self) -> list[str]:
        """Layers in the order of raising: those that add the largest error in int8 first."""
        layers = sorted(self._blame(self._int8).layers, key=lambda each: -each.share)
        return [each.float_tensor for each in layers if each.share > 0 and each.dtype == "int8"]

    @cached_property
    def _lowering(self) -> list[str]:
        """Layers in the order of lowering: those whose int4 weights add the least error per saved byte first."""
        made = self._made(recipe("int8x4", self._float_io, self._pinned))
        if made is None:
            return []
        graph, errors = made[1], dict[str, float]()
        shares = {each.tensor: each.share for each in self._blame(graph).layers}
        for op in graph.ops:
            sizes = [t.elements for t in op.inputs if t is not None and t.is_constant and t.dtype == "int4"]
            if sizes:
                errors[op.outputs[0].name] = shares.get(op.outputs[0].name, 0.0) / sum(sizes)
        return sorted(errors, key=lambda name: errors[name])

    def _blame(self, graph: Graph) -> Blame:
        return blame_layers(graph, self._model, self._batches(), self._count, self._progress)

    # --- plans -----------------------------------------------------------------------------------

    def _layers(self, raised: Iterable[str], lowered: Iterable[str]) -> Layers:
        """Return the schemes of layers that are not int8, in the model's order."""
        high = {name for each in raised for name in with_readers(self._int8, each)} if raised else set()
        schemes = dict.fromkeys(lowered, "int8x4") | dict.fromkeys(high, "int16x8") | dict(self._pinned)
        graph = self._model.graph
        names = [tensor.name for tensor in (*graph.inputs, *(t for op in graph.ops for t in op.outputs))]
        return tuple((name, schemes[name]) for name in names if name in schemes)

    def _price(self, raised: Sequence[str], lowered: Sequence[str]) -> _Priced | None:
        """Return a plan with its costs; None if the bits give no plan."""
        layers = self._layers(raised, lowered)
        if layers not in self._priced:
            self._progress(
                f"pricing {len(self._priced) + 1} plans: {len(raised)} layers raised, {len(lowered)} lowered"
            )
            self._priced[layers] = self._price_anew(layers)
        return self._priced[layers]

    def _price_anew(self, layers: Layers) -> _Priced | None:
        made = self._made(recipe("int8", self._float_io, layers))
        if made is None:
            return None
        data, graph = made
        try:
            plan = compile_graph(graph, self._target, self._options)
        except CompileError:
            return None
        goal, instructions = self._goal, predicted_total(plan)
        flash = plan.weight_bytes + estimated_code_bytes(plan)
        limits = {
            "max_ram": (plan.ram_bytes, goal.max_ram),
            "max_flash": (flash, goal.max_flash),
            "max_instructions": (instructions, goal.max_instructions),
        }
        exceeds = tuple(
            name for name, (cost, most) in limits.items() if most is not None and (cost is None or cost > most)
        )
        return _Priced(plan, graph, data, instructions, flash, exceeds)

    def _made(self, wanted: list[Mapping[str, object]]) -> tuple[bytes, Graph] | None:
        try:
            data = self._quantizer.quantize(wanted)
            return data, read_tflite(self._model.path, data)
        except (Refused, CompileError):
            return None

    def _measure(self, raised: Sequence[str], lowered: Sequence[str]) -> BitPlan | None:
        """Return a plan with its accuracy; None if the bits give no plan, or its outputs differ from the
        interpreter's."""
        layers, priced = self._layers(raised, lowered), self._price(raised, lowered)
        if priced is None or layers in self._plans:
            return self._plans.get(layers)
        self._progress(f"evaluating plan {len(self._plans) + 1} of at most {MAX_PLANS}")
        found = self._evaluate(priced.plan, priced.data)
        self._first = self._first or found
        assert self._first.float_model is not None
        if found.faulty:
            self._warnings.append(f"a plan's outputs differ from the interpreter's: a fault of tinyfuse ({layers})")
            return None
        lost = _loss(found.metric, self._first.float_model.value, found.score.value)
        # a share of samples has rounding errors far below one sample
        inaccurate = ("accuracy_loss",) if lost > self._goal.accuracy_loss + 1e-9 else ()
        self._plans[layers] = BitPlan(
            layers, priced.data, found.score, lost, priced.plan.ram_bytes, priced.instructions, priced.flash_bytes,
            found.exact, (*inaccurate, *priced.exceeds),
        )  # fmt: skip
        return self._plans[layers]


def _loss(metric: str, floating: float, found: float) -> float:
    """Return how much worse a score is than the float model's, in the unit of Goal."""
    lost = found - floating if metric in ERRORS else floating - found
    return 100 * lost if is_share(metric) else lost


def _prefixes(names: Sequence[str], most: int) -> list[list[str]]:
    """Return at most `most` prefixes of a list, shortest first, with evenly spread lengths."""
    lengths = sorted({round(n) for n in np.linspace(1, len(names), most)}) if names else []
    return [list(names[:length]) for length in lengths]


def _costs(plan: BitPlan) -> tuple[int, int, int]:
    return plan.instructions or 0, plan.ram_bytes, plan.flash_bytes


def _beats(one: BitPlan, other: BitPlan) -> bool:
    """Tell whether a plan is no worse than another in anything, and better in something."""
    first, second = ((plan.loss, *_costs(plan)) for plan in (one, other))
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))
