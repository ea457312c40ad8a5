"""This machine as an "emulator": the module runs natively, under sanitizers."""

from __future__ import annotations

import platform
import re

from tinyfuse.verify.emulation.process import run_limited
from tinyfuse.verify.emulation.result import Firmware, Outcome, emulation_failure, parse_outcome


class Host:
    """Runs a program under sanitizers on this machine instead of firmware."""

    name = "host"
    version = platform.machine()

    def run(self, firmware: Firmware, time_limit: float) -> Outcome:
        """See `Emulator.run`. A sanitizer's report is an EmulationFailed."""
        code, log = run_limited(
            [str(firmware.elf)],
            time_limit,
            # No heap is used, and the leak checker can't run under a debugger.
            env={"ASAN_OPTIONS": "exitcode=99:detect_leaks=0", "UBSAN_OPTIONS": "exitcode=99"},
        )
        if code not in (0, 1):
            report = re.search(r"^.*(ERROR: AddressSanitizer|runtime error).*(\n.*){0,9}", log, re.M)
            raise emulation_failure(f"the module's run ended with code {code}", report[0] if report else log)
        return parse_outcome(log, firmware, tick_ns=1)
