"""A local server with an index of CMSIS-Packs, their descriptions, and the packs."""

from __future__ import annotations

import io
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

#: memories of a device: (id, start, bytes)
Memory = tuple[str, int, int]


class PackServer:
    """Serves a folder on a free port; `asked` are the requested paths."""

    def __init__(self, folder: Path):
        self.folder, self.asked = folder, []
        folder.mkdir()
        asked = self.asked

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, *arguments) -> None:
                asked.append(self.path)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        # it looks every so many seconds whether it shall close, and a test waits for that
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self._packs: list[tuple[str, str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def index(self) -> str:
        return f"{self.address}/index.pidx"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(
        self, vendor: str, name: str, versions: list[str], contents: str = "", packs: dict[str, dict] | None = None
    ) -> None:
        """Adds a pack with its releases, newest first. `contents`: XML of its description; `packs`: files (name ->
        bytes) of each version that can be downloaded."""
        releases = "".join(f'<release version="{v}">notes</release>' for v in versions)
        (self.folder / f"{vendor}.{name}.pdsc").write_text(
            f'<?xml version="1.0" encoding="UTF-8"?><package schemaVersion="1.7.0"><vendor>{vendor}</vendor>'
            f"<name>{name}</name><description>made by a test</description><url>{self.address}/</url>"
            f"<license>LICENSE</license><releases>{releases}</releases>{contents}</package>"
        )
        for version, files in (packs or {}).items():
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w") as archive:
                for path, content in files.items():
                    archive.writestr(path, content)
            (self.folder / f"{vendor}.{name}.{version}.pack").write_bytes(data.getvalue())
        self._packs = [p for p in self._packs if p[:2] != (vendor, name)] + [(vendor, name, versions[0])]
        listed = "".join(
            f'<pdsc url="{self.address}/" vendor="{v}" name="{n}" version="{new}"/>' for v, n, new in self._packs
        )
        (self.folder / "index.pidx").write_text(
            f'<?xml version="1.0" encoding="UTF-8"?><index schemaVersion="1.1.0"><vendor>Test</vendor>'
            f"<url>{self.address}/</url><pindex>{listed}</pindex></index>"
        )


def device(name: str, processors: list[dict[str, str]], memories: list[Memory], variants: tuple[str, ...] = ()) -> str:
    """XML of a device: attributes of its processors, memories, names of variants."""
    cores = "".join(f"<processor {_attributes(p)}/>" for p in processors)
    regions = "".join(
        f"<memory {_attributes({'id': i, 'start': hex(start), 'size': hex(size), 'default': '1'})}/>"
        for i, start, size in memories
    )
    kinds = "".join(f'<variant Dvariant="{v}"/>' for v in variants)
    return f'<device Dname="{name}">{cores}{regions}{kinds}</device>'


def family(name: str, devices: list[str], processor: dict[str, str] | None = None) -> str:
    """XML of a family of devices, with what its processors have in common."""
    common = f"<processor {_attributes(processor)}/>" if processor else ""
    return f'<devices><family Dfamily="{name}" Dvendor="Test:0">{common}{"".join(devices)}</family></devices>'


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f'{key}="{value}"' for key, value in values.items())
