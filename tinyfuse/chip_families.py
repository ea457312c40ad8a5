"""Target of a microcontroller, by the beginning of its name: advice without any downloaded data."""

from __future__ import annotations

from dataclasses import dataclass

#: target -> beginnings of chips' names
_BY_TARGET = {
    "cortex-m0plus": (
        "stm32c0 stm32f0 stm32g0 stm32l0 stm32u0 stm32wb0 stm32wl3 nrf51 rp2040 atsamd1 atsamd2 atsamc2 atsamda1 "
        "atsaml1 atsaml2 samd1 samd2 samc2 samda1 saml1 saml2 pic32cm lpc8 lpc11 mcxc mkl efm32zg efm32hg efm32tg11 "
        "r7fa0 r7fa2 ra0 ra2 xmc1 cy8c4 mspm0 cc23 gd32e23"
    ),
    "cortex-m3": (
        "stm32f1 stm32f2 stm32l1 atsam3 sam3 lpc13 lpc15 lpc17 lpc18 efm32g efm32lg efm32tg cc1310 cc2620 cc2630 "
        "cc2640 cc2650 lm3s gd32f1 gd32f2 cy8c5"
    ),
    "cortex-m4": (
        "stm32f3 stm32f4 stm32g4 stm32l4 stm32wb stm32wl stm32mp1 nrf52 atsamd5 atsame5 atsam4 samd5 same5 sam4 "
        "pic32cx lpc40 lpc43 lpc54 mk2 mk6 mk8 efm32wg efm32pg efr32bg1 efr32fg1 efr32mg1 r7fa4m1 r7fa4w1 r7fa6m1 "
        "r7fa6m2 r7fa6m3 r7fa6t1 ra4m1 ra4w1 ra6m1 ra6m2 ra6m3 ra6t1 xmc4 cy8c6 apollo2 apollo3 apollo4 ama2 ama3 "
        "ama4 cc1312 cc1352 cc2642 cc2652 cc32 msp432 tm4c gd32f3 gd32f4 max3265 max3266 max3269 max78"
    ),
    "cortex-m7": (
        "stm32f7 stm32h7 atsame7 atsams7 atsamv7 same7 sams7 samv7 imxrt10 imxrt11 mimxrt10 mimxrt11 s32k3 teensy4 xmc7"
    ),
    "cortex-m33": (
        "stm32h5 stm32l5 stm32mp2 stm32u3 stm32u5 stm32wba nrf53 nrf54 nrf91 nrf92 rp2350 lpc55 mcxa mcxn mcxw imxrt5 "
        "imxrt6 mimxrt5 mimxrt6 efr32bg2 efr32fg2 efr32mg2 efr32zg2 r7fa4 r7fa6 ra4 ra6 gd32e5 gd32w5 cc1314 cc1354 "
        "cc2674 cc27 cc35"
    ),
    "cortex-m55": "stm32n6 apollo5 ap5 alif ae1 ae3 ae5 ae7 hx6538 we2 m55m1 pse8",
    "cortex-m85": "stm32v8 r7fa8 r7ka8 ra8",
    "generic32": "esp32 esp8266 gd32vf ch32v bl60 bl61 bl70 hpm5 hpm6",
}
#: beginning of a chip's name -> target
FAMILIES = {name: target for target, names in _BY_TARGET.items() for name in names.split()}
#: families whose chips differ -> what to look at
_DIFFERENT = {
    "stm32h745": "its other core, a Cortex-M4, takes cortex-m4",
    "stm32h747": "its other core, a Cortex-M4, takes cortex-m4",
    "stm32h755": "its other core, a Cortex-M4, takes cortex-m4",
    "stm32h757": "its other core, a Cortex-M4, takes cortex-m4",
    "nrf52805": "it has no FPU: cortex-m4+nofp",
    "nrf52810": "it has no FPU: cortex-m4+nofp",
    "nrf52811": "it has no FPU: cortex-m4+nofp",
    "nrf52820": "it has no FPU: cortex-m4+nofp",
    "stm32wl": "it has no FPU: cortex-m4+nofp",
    "cc32": "it has no FPU: cortex-m4+nofp",
    "mcxa": "some have neither DSP nor FPU: cortex-m33+nofp+nodsp",
    "nrf53": "its network core has neither DSP nor FPU: cortex-m33+nofp+nodsp",
    "rp2350": "its RISC-V cores take generic32",
    "esp": "with --format esp-idf it is a component of ESP-IDF",
}
#: machines that no target fits, because their int has 16 bits
_SMALL = ("atmega", "attiny", "avr", "msp430", "pic16", "pic18", "pic24", "dspic")


@dataclass(frozen=True)
class Family:
    """A family of microcontrollers.

    name    the beginning of its chips' names, in capitals
    target  the target whose code they run; None if there is none
    note    difference between its chips, or reason why no target fits
    """

    name: str
    target: str | None
    note: str | None = None

    @property
    def in_packs(self) -> bool:
        """Tells whether CMSIS-Packs describe its chips: those with Arm cores."""
        return self.target not in (None, "generic32")

    def __str__(self) -> str:
        """Sentence that advises a target for the family."""
        note = f" ({self.note})" if self.note else ""
        if self.target is None:
            return f"no target fits {self.name}{note}"
        return f"for {self.name} give --target {self.target}{note}"


def find_family(chip: str) -> Family | None:
    """Finds the family of a microcontroller, by the longest known beginning of its name; None for other names."""
    plain = chip.lower().replace("-", "").replace("_", "").replace(" ", "")
    for beginning in _SMALL:
        if plain.startswith(beginning):
            return Family(beginning.upper(), None, "generated code needs an int of 32 bits")
    found = [name for name in FAMILIES if plain.startswith(name)]
    if not found:
        return None
    name = max(found, key=len)
    notes = [beginning for beginning in _DIFFERENT if plain.startswith(beginning)]
    return Family(name.upper(), FAMILIES[name], _DIFFERENT[max(notes, key=len)] if notes else None)
