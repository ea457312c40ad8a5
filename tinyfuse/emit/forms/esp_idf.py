"""ESP-IDF: a component; for Xtensa and RISC-V, so for modules of `--target generic32`."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form, public_licence

FORM = Form(
    "esp-idf",
    "a component for components/ or the registry",
    {"CMakeLists.txt": "forms/esp_idf.CMakeLists.txt.j2", "idf_component.yml": "forms/esp_idf.component.yml.j2"},
    context=lambda known: {"public_licence": public_licence(known["about"])},
)
