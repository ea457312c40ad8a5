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
    default     value without the flag; None if it depends on other options or files, which `otherwise` may describe
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
        raise UsageError(
            f"{text!r} is not a step's length; write a number of instructions, such as 20000, or 200us@80MHz"
        )
    if found < 1:
        raise UsageError(f"{text!r} is less than one instruction; give a longer step")
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

    name: str = option(
        "Prefix of the generated files' and C functions' names.", metavar="NAME", otherwise="the model file's name"
    )
    kernels: str = option(
        "The functions that compute layers. auto, tinyfuse: tinyfuse's own, which need no library; mixed: CMSIS-NN's "
        "where the target's cost table predicts that they are faster; cmsis-nn: CMSIS-NN's wherever it has one.",
        "auto",
        choices=KERNELS,
    )
    fusion: str = option(
        "Which operators are computed together. none: each one alone; basic: activations, padding and batch "
        "normalization with the layer beside them; rows: as basic, and groups of layers are computed row by row, so "
        "that RAM holds only a few rows of the tensors between them (docs/fusion.md).",
        "rows",
        choices=FUSION,
    )
    optimize: str = option(
        "The goal of --fusion rows. speed: the fewest instructions within --max-ram; balanced: the least RAM of all "
        "plans with at most 8 % more instructions than the fastest (15 % with Helium, 4 % with --kernels cmsis-nn); "
        "ram: the least RAM, or up to 1 % more if that saves at least the same percentage of instructions and is "
        "within --max-ram.",
        "balanced",
        choices=OPTIMIZE,
    )
    count: str = option(
        "The unit in which --optimize compares speed: predicted instructions or estimated cycles. Cycles are those of "
        "the board that --timing names, or of the target's first board in docs/timing.md.",
        None,
        settled="instructions",
        choices=COUNTS,
        otherwise="cycles with --timing, and with --optimize speed on Cortex-M7; else instructions",
    )
    timing: str | None = option(
        "The board for which cycles and milliseconds are estimated: a name from docs/timing.md, or the clock frequency "
        "(120MHz), which the flash's wait states and bytes per read may follow (120MHz,wait=5,line=8).",
        None,
        metavar="BOARD",
    )
    recompute: float | None = option(
        "Compute rows and layers more than once where that saves RAM. The multiply-accumulates and the predicted "
        "instructions may become F times those of computing everything once (docs/fusion-rows.md, "
        "docs/fusion-search.md).",
        None,
        metavar="F",
        limits=(1.0, 100.0),
        otherwise="1.3 with --optimize ram, else 1",
    )
    weights: str = option(
        "Form of the weights in flash. packed: as wide as in the file; unpacked: int16, not with Helium; winograd: "
        "transformed for layers of 3x3 and 1x3, needs the DSP extension; compressed: indexes of 1 to 4 bits, if a "
        "tensor has at most 16 different values; auto: the form with the fewest instructions. With --optimize speed, "
        "auto may fill --max-flash; with the others, each extra byte of flash must save "
        f"{FLASH_PRICES['balanced']:.0f} instructions (docs/kernels-weights.md).",
        settled="packed",
        choices=WEIGHTS,
        otherwise="auto with --optimize speed, else packed",
    )
    weights_blob: bool = option(
        "Write the weights to NAME_weights.bin, which can be updated without the code. The firmware passes their "
        "address to NAME_bind (docs/weights.md).",
        False,
    )
    feed_rows: bool = option(
        "Generate NAME_begin, NAME_feed_rows and NAME_finish, to which the caller passes the input image row by row. "
        "With --slide, generate only NAME_feed_rows, which takes a step's new frames one by one.",
        False,
    )
    input_layout: str = option(
        "Order of an input's elements. file: as in the model; nhwc: channels last, even if the model has channels "
        "first (NCHW, NCW), as models from PyTorch have (docs/pytorch.md).",
        "file",
        choices=LAYOUTS,
    )
    output_layout: str = option("Order of an output's elements: values as for --input-layout.", "file", choices=LAYOUTS)
    step: bool = option(
        "Also generate NAME_step, which computes one row per call, so that the firmware can do other work between two "
        "calls (docs/steps.md).",
        False,
    )
    slide: int | None = option(
        "Generate NAME_slide, for a model whose input is the last frames of a signal: each call takes FRAMES new "
        "frames, and reuses results of earlier calls (docs/sliding.md).",
        None,
        metavar="FRAMES",
        limits=(1, None),
    )
    slide_axis: int | None = option(
        "With --slide: the number of the input's time dimension; the first one is 0.",
        None,
        metavar="AXIS",
        limits=(0, 5),
        otherwise="1",
    )
    plugins: tuple[str, ...] = option(
        "Run a Python file that adds operators, or patterns of operators to replace (docs/plugins.md). Repeat it for "
        "several files.",
        (),
        flag="--plugin",
        metavar="FILE",
        is_file=True,
    )
    labels: tuple[tuple[str, ...], ...] = option(
        "A file of class names, one per line, which NAME_label_OUTPUT(i) returns. Repeat it for each output, in the "
        "model's order. Without it, names come from the model's metadata.",
        (),
        metavar="FILE",
        is_file=True,
    )
    cmsis_nn_version: str = option(
        "The version of CMSIS-NN whose functions the code calls.",
        settled="7.0",
        choices=tuple(CMSIS_NN_VERSIONS),
        otherwise="7.0; `tinyfuse verify` and `gen --bundle` use the version of the source tree that they find",
    )
    cmsis_nn_lacks: tuple[str, ...] = ()
    memory: tuple[str, ...] = option(
        "A memory bank of the chip that the module may use: NAME=SIZE, then :slow, :fast, :ram, :flash or :code. "
        "Repeat it for each bank. Arena and state go into RAM, weights into flash, the most-read data into fast banks "
        "(docs/memories.md).",
        (),
        metavar="NAME=SIZE[:slow]",
    )
    max_step: int | None = option(
        "Generate NAME_step, whose calls take at most N predicted instructions each; 200us@80MHz means 16000, at one "
        "instruction per cycle. Fail if the work cannot be divided so finely (docs/steps.md).",
        None,
        metavar="N",
        is_step=True,
    )
    max_ram: int | None = option(
        "Fail if arena and state together are larger than SIZE, such as 65536, 64K or 1M.",
        None,
        metavar="SIZE",
        is_size=True,
    )
    max_flash: int | None = option(
        "Fail if weights, code and the C library's functions that it calls are larger than SIZE together. Before that, "
        "bytes that save few instructions are given up.",
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
            raise UsageError("--slide-axis works only with --slide; give both")
        if self.slide is not None and self.step:
            raise UsageError("--slide and --step exclude each other: NAME_slide cannot be divided into steps")
        if self.step and self.feed_rows:
            raise UsageError("--step and --feed-rows exclude each other: NAME_feed_rows already returns after each row")
        if self.feeds_image and self.fusion != "rows":
            raise UsageError(f"--feed-rows needs --fusion rows, not {self.fusion}")


@dataclass(frozen=True)
class Files:
    """Files besides the model's from which a module is made. Where they are does not change the code."""

    front_end: str | None = option(
        "A model whose output is the network's input, such as one from `tinyfuse front-end` (docs/audio.md).",
        None,
        metavar="FILE",
        is_file=True,
    )
    quantize_with: tuple[str, ...] = option(
        "Quantize the float MODEL to int8 first, with this calibration data (docs/quantize.md). Repeat it for each "
        "input.",
        (),
        metavar="[NAME=]FILE",
        is_file=True,
    )
    cmsis_nn_path: str | None = option(
        "A CMSIS-NN source tree.",
        None,
        otherwise="the environment variable CMSIS_NN_PATH, else a pack in cmsis-pack-manager's cache, else "
        "the PyPI package bakenn",
        flag="--cmsis-nn",
        metavar="PATH",
        is_file=True,
    )


#: every option that makes a module, by field name
DECLARED = flags(Options) | flags(Files)


def _emulator() -> Any:
    return option(
        "Where the firmware runs. auto: on QEMU if it is installed, else on Renode; qemu, renode: on this emulator "
        "(RENODE_PATH may name Renode's program); host: on this computer, under sanitizers.",
        "auto",
        choices=EMULATORS,
    )


def _compiler_opt() -> Any:
    return option(
        "The compiler's optimization level. With --emulator host it is always O1; for CMSIS-NN it is at least O1.",
        "O2",
        choices=COMPILER_OPTS,
    )


def _compiler() -> Any:
    return option(
        "The compiler of the module and of CMSIS-NN. On an emulated core, GCC always compiles the test harness and "
        "links the firmware.",
        "gcc",
        choices=COMPILERS,
    )


def _timeout(run: str = "the emulated run") -> Any:
    return option(f"Give up if {run} takes longer than this on the host.", 300.0, metavar="SECONDS", limits=(1.0, None))


def _oracle() -> Any:
    return option(
        "The interpreter whose outputs must be equal. auto: the runtime that MODEL was made for.",
        "auto",
        choices=ORACLES,
    )


def _runs() -> Any:
    return option(
        "Number of test inputs. In the first three, all elements are the least value, the largest value and the zero "
        "point; the others are random. With --slide: the number of steps that have a result.",
        None,
        limits=(1, 10000),
        otherwise="8; 64 for a model with state or with --slide; four times as many if an output never changes",
    )


def _frames() -> Any:
    return option(
        "For a model with state: number of runs from one reset of the state to the next.",
        None,
        limits=(1, None),
        otherwise="a quarter of --runs",
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
        "Also verify builds with other optimization levels (O0, Os, O3), and a build of portable C under sanitizers. "
        "Use four times as many inputs.",
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

    emulator: str = option(
        "The emulator that counts. QEMU counts each operator and function; Renode counts only totals.",
        "auto",
        choices=("auto", "qemu", "renode"),
    )
    compiler: str = _compiler()
    compiler_opt: str = _compiler_opt()
    timeout: float = _timeout("each emulated run")


@dataclass(frozen=True)
class BoardOptions:
    """Options of validation on a board. runs, frames: None for numbers that suit the model."""

    baud: int = option("Speed of the serial line in bits per second.", 115200, limits=(300, 20_000_000))
    timeout: float = option(
        "Give up if one inference takes longer than this.", 60.0, metavar="SECONDS", limits=(1.0, None)
    )
    oracle: str = _oracle()
    runs: int | None = _runs()
    frames: int | None = _frames()
    seed: int = _seed()
