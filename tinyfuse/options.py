"""Options of the commands that take a model, each declared once as a field of a dataclass.

`Options` has those that change the generated code. A field and its `option` define:

- The flag and its line in --help (tinyfuse/cli/flags.py), in docs/options.md (tinyfuse/cli/reference.py), and in the
  help of Python (tinyfuse/api/settings_help.py).
- Its place in a Request, and in the command that `verify` prints to repeat itself (tinyfuse/cli/request.py).
- Its key in JSON and in manifest.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from tinyfuse.errors import UsageError

KERNELS = ("auto", "tinyfuse", "mixed", "cmsis-nn")
FUSION = ("none", "basic", "rows")
WEIGHTS = ("auto", "packed", "unpacked", "winograd", "compressed")
OPTIMIZE = ("speed", "balanced", "ram")
COUNTS = ("instructions", "cycles")
#: price of a flash byte by objective: predicted instructions of an inference that it must save
#: (schedule/variants/flash_price.py)
FLASH_PRICES = {"speed": 0.0, "balanced": 32.0, "ram": 32.0}
#: compilers, and levels of optimization (the flag without its dash), for the generated code
COMPILERS = ("gcc", "clang", "armclang")
COMPILER_OPTS = ("O0", "Og", "O1", "O2", "O3", "Os", "Oz")
CMSIS_NN_VERSIONS = {"4.0": (4, 0), "4.1": (4, 1), "5.0": (5, 0), "6.0": (6, 0), "7.0": (7, 0)}
EMULATORS = ("auto", "renode", "qemu", "host")
LAYOUTS = ("file", "nhwc")
ORACLES = ("auto", "tflm", "litert", "onnxruntime", "executorch", "cmsis-nn", "reference")


@dataclass(frozen=True)
class Flag:
    """Appearance of an option on the command line.

    flag        as typed
    default     value without the flag; None if that depends on something else, which `otherwise` may describe
    help        what it does; other options are spelled as typed, pages of docs/ as (docs/PAGE.md)
    choices     all values, if they are few
    metavar     placeholder of the value in --help
    otherwise   the default in words
    limits      smallest and largest number, None for no limit; floats if it need not be whole
    is_file     the value is a path
    is_size     the value is parsed by `parse_size`
    is_step     the value is parsed by `parse_step`
    """

    flag: str
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    otherwise: str | None = None
    limits: tuple[float, float | None] | None = None
    is_file: bool = False
    is_size: bool = False
    is_step: bool = False

    @property
    def is_switch(self) -> bool:
        return self.default is False

    @property
    def is_repeated(self) -> bool:
        return isinstance(self.default, tuple)

    def words(self, value: Any) -> list[str]:
        """Words to type for a value; none for the default."""
        if value == self.default:
            return []
        if self.is_switch:
            return [self.flag]
        values = value if self.is_repeated else [value]
        return [word for each in values for word in (self.flag, str(each))]


def option(help: str, default: Any = MISSING, *, settled: Any = MISSING, flag: str | None = None, **shown: Any) -> Any:
    """Declares a field of a dataclass as an option, with its Flag. `settled` is the field's default if it differs from
    the flag's."""
    metadata = {"flag": flag, "default": None if default is MISSING else default, "help": help, **shown}
    return field(default=default if settled is MISSING else settled, metadata=metadata)


def flags(declared: type) -> dict[str, Flag]:
    """Flags of a dataclass by field name; fields that are no options have none."""
    found = {}
    for each in fields(declared):
        if each.metadata:
            spelled = each.metadata["flag"] or "--" + each.name.replace("_", "-")
            found[each.name] = Flag(**{**each.metadata, "flag": spelled})
    return found


#: an option, and a following word that may be its value
_TYPED = re.compile(r"(?<![\w-])(--[a-z]+(?:-[a-z]+)*)(?: ([a-z][a-z-]*))?")


def respell_options(text: str, declared: Mapping[str, Flag], spell: Callable[[str, str, str | None], str]) -> str:
    """Replaces each option in a help text by `spell(name, flag, value or None)`."""
    by_flag = {flag.flag: (name, flag) for name, flag in declared.items()}

    def spelled(typed: re.Match[str]) -> str:
        if typed[1] not in by_flag:
            return typed[0]
        (name, flag), word = by_flag[typed[1]], typed[2]
        if word is None or word in flag.choices:
            return spell(name, typed[1], word)
        return f"{spell(name, typed[1], None)} {word}"

    return _TYPED.sub(spelled, text)


def default_weights(optimize: str | None) -> str:
    """Default of --weights: only speed may cost flash."""
    return "auto" if optimize == "speed" else "packed"


def parse_size(text: str | None) -> int | None:
    """Parses bytes: "20480", "20K", "64KiB" or "1M" (K and M are 1024 and 1024**2); None stays None."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,12})\s*([kKmM]?)(?:i?[bB])?\s*", text)
    if not match:
        raise UsageError(f"{text!r} is not a size; write bytes, or 64K, or 1M")
    return int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()]


_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)\s*"
_TIMED_STEP = re.compile(rf"\s*{_NUMBER}(s|ms|us|ns)\s*@\s*{_NUMBER}([kMG]?)Hz\s*")


def parse_step(text: str | None) -> int | None:
    """Parses the length of a step: instructions, "16000" or "16K", or a time at a clock, "200us@80MHz" (also s, ms, ns;
    kHz, GHz), at one instruction per cycle. UsageError for other texts, and for less than one instruction."""
    if text is None:
        return None
    timed = _TIMED_STEP.fullmatch(text)
    plain = re.fullmatch(r"\s*(\d{1,12})\s*([kKmM]?)\s*", text)
    if timed:
        seconds = float(timed[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[timed[2]]
        found = int(seconds * float(timed[3]) * {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}[timed[4]] + 1e-6)
    elif plain:
        found = int(plain[1]) * {"": 1, "k": 1000, "m": 1000**2}[plain[2].lower()]
    else:
        raise UsageError(f"{text!r} is no length of a step; write instructions, such as 20000, or 200us@80MHz")
    if found < 1:
        raise UsageError(f"{text!r} leaves no instruction for a step")
    return found


@dataclass(frozen=True)
class Options:
    """Options that change the generated code, with defaults resolved: equal options and models give equal files.

    name             prefix of the module's C names, already a valid one
    max_ram, max_flash   bytes or None
    plugins          names of plugin files
    labels           labels per output, in the model's order: those of the files, else of the model's metadata
    cmsis_nn_lacks   functions that the CMSIS-NN tree lacks, though its version has them
    """

    name: str = option("Prefix of the C names.", metavar="NAME", otherwise="the model file's name")
    kernels: str = option(
        "auto, tinyfuse: ours, which need no library; mixed: CMSIS-NN's where the target's cost table predicts them "
        "faster; cmsis-nn: CMSIS-NN's wherever it has one.",
        "auto",
        choices=KERNELS,
    )
    fusion: str = option(
        "none: each operator alone; basic: fold activations, padding and batch normalization into neighbours; rows: "
        "also form groups of operators that stream rows (docs/fusion.md).",
        "rows",
        choices=FUSION,
    )
    optimize: str = option(
        "With --fusion rows: speed: the fewest instructions that --max-ram allows; ram: the least RAM, or up to 1 % "
        "more where that saves at least the same share of instructions and --max-ram allows it; balanced: the least "
        "RAM within 8 % of the fewest instructions (15 % with Helium, 4 % with --kernels cmsis-nn).",
        "balanced",
        choices=OPTIMIZE,
    )
    count: str = option(
        "What --optimize counts: predicted instructions, or estimated cycles on the board of --timing, else on the "
        "target's first board in docs/timing.md.",
        None,
        settled="instructions",
        choices=COUNTS,
        otherwise="cycles with --timing, and with --optimize speed on Cortex-M7; else instructions",
    )
    timing: str | None = option(
        "Your board, for estimated cycles and milliseconds: a name from docs/timing.md, or its clock (120MHz), with "
        "the flash's wait states and bytes per read (120MHz,wait=5,line=8).",
        None,
        metavar="BOARD",
    )
    recompute: float | None = option(
        "Compute rows and layers again where that saves RAM, up to F times the multiply-accumulates, and the predicted "
        "instructions, of computing each once (docs/fusion-rows.md, docs/fusion-search.md).",
        None,
        metavar="F",
        limits=(1.0, 100.0),
        otherwise="1.3 with --optimize ram, else 1",
    )
    weights: str = option(
        "How weights lie in flash. packed: as wide as in the file; unpacked: int16, not with Helium; winograd: "
        "transformed for 3x3, 3x1 and 1x3 layers, with the DSP extension; compressed: indexes of 1 to 4 bits, where at "
        "most 16 values occur; auto: whatever saves instructions, with --optimize speed up to --max-flash, else "
        f"{FLASH_PRICES['balanced']:.0f} per extra byte (docs/kernels-weights.md).",
        settled="packed",
        choices=WEIGHTS,
        otherwise="auto with --optimize speed, else packed",
    )
    weights_blob: bool = option(
        "Put the weights into NAME_weights.bin, which can be updated without the code; NAME_bind takes its address "
        "(docs/weights.md).",
        False,
    )
    feed_rows: bool = option(
        "Generate NAME_begin, NAME_feed_rows and NAME_finish: the caller passes the input image row by row. With "
        "--slide, generate only NAME_feed_rows, for a step's frames.",
        False,
    )
    input_layout: str = option(
        "nhwc: input buffers have channels last even if the file has planes (NCHW, NCW), as models from PyTorch "
        "have (docs/pytorch.md).",
        "file",
        choices=LAYOUTS,
    )
    output_layout: str = option("nhwc: the same for outputs.", "file", choices=LAYOUTS)
    step: bool = option(
        "Also generate NAME_step, which computes one row per call, so that an inference can be interrupted "
        "(docs/steps.md).",
        False,
    )
    slide: int | None = option(
        "Generate NAME_slide: a window over the last frames moves by FRAMES in each step, and results of earlier steps "
        "are kept (docs/sliding.md).",
        None,
        metavar="FRAMES",
        limits=(1, None),
    )
    slide_axis: int | None = option(
        "With --slide: the input's dimension that is time, counted from 0.",
        None,
        metavar="AXIS",
        limits=(0, 5),
        otherwise="1",
    )
    plugins: tuple[str, ...] = option(
        "Run a Python file that adds operators and patterns (docs/plugins.md).",
        (),
        flag="--plugin",
        metavar="FILE",
        is_file=True,
    )
    labels: tuple[tuple[str, ...], ...] = option(
        "Names of classes, one per line, for NAME_label_OUTPUT(i). Repeat it for each output, in the model's order. "
        "Without it, names come from the model's metadata.",
        (),
        metavar="FILE",
        is_file=True,
    )
    cmsis_nn_version: str = option(
        "The API of CMSIS-NN that the code calls.",
        settled="7.0",
        choices=tuple(CMSIS_NN_VERSIONS),
        otherwise="7.0; `tinyfuse verify` and `gen --bundle` use that of the tree that they find",
    )
    cmsis_nn_lacks: tuple[str, ...] = ()
    memory: tuple[str, ...] = option(
        "A memory bank that the module may use, NAME=SIZE with :slow, :fast, :ram, :flash or :code; repeat it for "
        "each. Arena and state go into RAM, weights into flash, the most-read data into fast banks (docs/memories.md).",
        (),
        metavar="NAME=SIZE[:slow]",
    )
    max_step: int | None = option(
        "Generate NAME_step with at most N predicted instructions per step, or 200us@80MHz at one per cycle. Fail if "
        "no division reaches that (docs/steps.md).",
        None,
        metavar="N",
        is_step=True,
    )
    max_ram: int | None = option(
        "Fail if arena and state are larger: 65536, 64K, 1M.", None, metavar="SIZE", is_size=True
    )
    max_flash: int | None = option(
        "Fail if weights, code and the C library's functions for it are larger; bytes that save few instructions are "
        "dropped first.",
        None,
        metavar="SIZE",
        is_size=True,
    )

    @property
    def recompute_limit(self) -> float:
        """Value of --recompute, or its default."""
        usual = 1.3 if self.optimize == "ram" else 1.0
        return usual if self.recompute is None else self.recompute

    @property
    def feeds_image(self) -> bool:
        """Tells whether the rows of a whole image are fed; with --slide they are a step's frames."""
        return self.feed_rows and self.slide is None

    def __post_init__(self) -> None:
        """Raises UsageError if options contradict each other."""
        if self.slide_axis is not None and self.slide is None:
            raise UsageError("--slide-axis says where the frames of --slide are: give --slide too")
        if self.slide is not None and self.step:
            raise UsageError("--slide and --step: NAME_slide computes all that new frames change; give one of the two")
        if self.step and self.feed_rows:
            raise UsageError("--step and --feed-rows: give one; a module that is fed rows returns after each of them")
        if self.feeds_image and self.fusion != "rows":
            raise UsageError(f"--feed-rows needs --fusion rows, not {self.fusion}")


@dataclass(frozen=True)
class Files:
    """Files besides the model's of which a module is made; their places do not change the code."""

    front_end: str | None = option(
        "A model whose output is the network's input, such as one from `tinyfuse front-end` (docs/audio.md).",
        None,
        metavar="FILE",
        is_file=True,
    )
    quantize_with: tuple[str, ...] = option(
        "Calibration data: quantize the float model to int8 first (docs/quantize.md). Repeat it for each input.",
        (),
        metavar="[NAME=]FILE",
        is_file=True,
    )
    cmsis_nn_path: str | None = option(
        "A CMSIS-NN source tree. Without it: CMSIS_NN_PATH, the pack cache, PyPI's bakenn.",
        None,
        flag="--cmsis-nn",
        metavar="PATH",
        is_file=True,
    )


#: every option that makes a module, by field name
DECLARED = flags(Options) | flags(Files)


def _emulator() -> Any:
    return option(
        "Emulator of the firmware; auto: QEMU, else Renode (RENODE_PATH may name it); host: native, under sanitizers.",
        "auto",
        choices=EMULATORS,
    )


def _compiler_opt() -> Any:
    return option(
        "The compiler's optimization level. It is O1 on the host, and at least O1 for CMSIS-NN.",
        "O2",
        choices=COMPILER_OPTS,
    )


def _compiler() -> Any:
    return option(
        "The compiler of the module and CMSIS-NN. For a core, GCC compiles the harness and links.",
        "gcc",
        choices=COMPILERS,
    )


def _timeout(run: str = "the emulated run") -> Any:
    return option(f"Limit of the host's time for {run}.", 300.0, metavar="SECONDS", limits=(1.0, None))


def _oracle() -> Any:
    return option("The reference to compare with.", "auto", choices=ORACLES)


def _runs() -> Any:
    return option(
        "Number of inputs: all-min, all-max, all-zero-point, then random ones; with --slide, steps that have a result.",
        None,
        limits=(1, 10000),
        otherwise="8; 64 for a model with state or with --slide; four times as many where an output stays the same",
    )


def _frames() -> Any:
    return option(
        "Runs from one reset of the state to the next.", None, limits=(1, None), otherwise="a quarter of --runs"
    )


def _seed() -> Any:
    return option("The seed of the random inputs.", 0, limits=(0, None))


@dataclass(frozen=True)
class VerifyOptions:
    """Options of verification. runs, frames: None for numbers that suit the model."""

    emulator: str = _emulator()
    oracle: str = _oracle()
    runs: int | None = _runs()
    frames: int | None = _frames()
    seed: int = _seed()
    compiler: str = _compiler()
    compiler_opt: str = _compiler_opt()
    timeout: float = _timeout()
    thorough: bool = option(
        "Also verify builds of other optimization levels (O0, Os, O3) and the portable form under sanitizers, with "
        "four times the inputs.",
        False,
    )


@dataclass(frozen=True)
class RunOptions:
    """Options of a run."""

    emulator: str = _emulator()
    compiler: str = _compiler()
    compiler_opt: str = _compiler_opt()
    timeout: float = _timeout()


@dataclass(frozen=True)
class ProfileOptions:
    """Options of a measurement."""

    emulator: str = option("QEMU counts everything, Renode only totals.", "auto", choices=("auto", "qemu", "renode"))
    compiler: str = _compiler()
    compiler_opt: str = _compiler_opt()
    timeout: float = _timeout("each emulated run")


@dataclass(frozen=True)
class BoardOptions:
    """Options of validation on a board. runs, frames: None for numbers that suit the model."""

    baud: int = option("Speed of the serial line.", 115200, limits=(300, 20_000_000))
    timeout: float = option("Time that one inference may take.", 60.0, metavar="SECONDS", limits=(1.0, None))
    oracle: str = _oracle()
    runs: int | None = _runs()
    frames: int | None = _frames()
    seed: int = _seed()
