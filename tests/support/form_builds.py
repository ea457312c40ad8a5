"""Each output form built with gcc as its build system would, from the form's own files, and run on this machine.

Where the build system is not here, its few functions and headers that our files call stand in for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from pathlib import Path

import yaml
from host_program import WARNINGS

#: prints the self-test's sentence
MAIN = """\
#include <stdio.h>
#include "net.h"
static NET_DEFINE_ARENA(arena);
#ifdef NET_STATE_BYTES
static NET_DEFINE_STATE(state);
#define TEST() net_selftest(arena, sizeof arena, state)
#else
#define TEST() net_selftest(arena, sizeof arena)
#endif
int main(void)
{
    puts(net_strerror(TEST()));
    return 0;
}
"""
#: with MAIN's, what a program prints where every bit is right
RIGHT = "no error\n"

_CMAKE_APP = """\
cmake_minimum_required(VERSION 3.13)
project(app C)
{before}
add_executable(app main.c)
target_link_libraries(app PRIVATE {libraries})
"""

#: the part of Zephyr's CMake that modules call, and headers of its names
_ZEPHYR = """\
set(ZEPHYR_CURRENT_MODULE_DIR "@module@")
@settings@
function(zephyr_include_directories)
  include_directories(${ARGN})
endfunction()
macro(zephyr_library_named name)
  add_library(${name} STATIC)
  set(library ${name})
endmacro()
function(zephyr_library_compile_options)
  target_compile_options(${library} PRIVATE -O2)
endfunction()
function(zephyr_library_compile_definitions)
  target_compile_definitions(${library} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGN})
endfunction()
macro(zephyr_part)
  include("@module@/@cmake@/CMakeLists.txt")
endmacro()
zephyr_part()
include_directories("${CMAKE_CURRENT_SOURCE_DIR}")
"""
_ZEPHYR_HEADERS = {
    "zephyr/kernel.h": "#include <stdint.h>\n",
    "zephyr/sys/printk.h": "#include <stdio.h>\n#define printk printf\n",
    "zephyr/ztest.h": """\
#include <stdio.h>
#include <string.h>
#define ZTEST_SUITE(suite, ...) enum { suite##_is_a_suite }
#define ZTEST(suite, test) static void test(void); int main(void) { test(); return 0; } static void test(void)
#define zassert_equal(a, b, ...) printf((a) == (b) ? "no error\\n" : __VA_ARGS__)
""",
}

_ESP_IDF = """\
function(idf_component_register)
  cmake_parse_arguments(the "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  add_library(net STATIC ${the_SRCS})
  target_include_directories(net PUBLIC ${the_INCLUDE_DIRS})
  set(COMPONENT_LIB net PARENT_SCOPE)
endfunction()
add_subdirectory("@module@" component)
"""

_ARDUINO_HEADER = """\
#pragma once
#include <stdio.h>
static unsigned long millis(void) { return 0; }
static unsigned long micros(void) { return 0; }
struct serial {
    void begin(long) {}
    void print(const char *text) { fputs(text, stdout); }
    void println(unsigned long) { puts(""); }
    explicit operator bool() const { return true; }
};
static serial Serial;
"""


def done(command: list[object], folder: Path, **variables: str) -> str:
    """Output of a command."""
    ended = subprocess.run(
        list(map(str, command)), cwd=folder, env=os.environ | variables, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:]
    return ended.stdout


def compiled(sources: list[Path], folder: Path, *flags: object) -> str:
    """Output of the program of these sources, compiled without a warning."""
    done(["gcc", "-std=c99", "-O1", *WARNINGS, *flags, *sources, "-lm", "-o", folder / "program"], folder)
    return done([folder / "program"], folder)


def _with_main(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"main.c": MAIN, **texts}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _by_cmake(work: Path, before: str, libraries: str, **texts: str) -> str:
    _with_main(work, **{"CMakeLists.txt": _CMAKE_APP.format(before=before, libraries=libraries), **texts})
    done(["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], work)
    done(["cmake", "--build", "build"], work)
    return done(["build/app"], work)


def cmake(module: Path, work: Path) -> str:
    return _by_cmake(work, f'add_subdirectory("{module}" net)', "net m")


def make(module: Path, work: Path) -> str:
    """Builds with its own Makefile, and included in another one."""
    _with_main(
        work,
        Makefile=f"include {module}/net.mk\nprogram: main.c $(net_SOURCES)\n\t$(CC) $(net_CPPFLAGS) $^ -lm -o $@\n",
    )
    done(["make", "program"], work)
    done(["make", "-s", "-C", module, f"OUT={work}/out", "CC=gcc", "AR=ar"], work)
    archived = compiled([work / "main.c", work / "out" / "libnet.a"], work, f"-I{next(module.rglob('net.h')).parent}")
    included = done([work / "program"], work)
    assert archived == included
    return included


def meson(module: Path, work: Path) -> str:
    project = "project('app', 'c')\nexecutable('app', 'main.c', dependencies : dependency('net', fallback : 'net'))\n"
    _with_main(work, **{"meson.build": project})
    (work / "subprojects").mkdir()
    (work / "subprojects" / "net").symlink_to(module)
    done([Path(sys.executable).parent / "meson", "setup", "build", "-Dwarning_level=3", "-Dwerror=true"], work)
    done(["ninja", "-C", "build"], work)
    return done(["build/app"], work)


def zephyr(module: Path, work: Path, application: str = "zephyr/tests/selftest") -> str:
    """Builds one of its applications, with prj.conf's settings as CMake variables."""
    told = yaml.safe_load((module / "zephyr/module.yml").read_text())
    settings = [
        line for line in (module / application / "prj.conf").read_text().splitlines() if line.startswith("CONFIG")
    ]
    before = _ZEPHYR.replace("@module@", str(module)).replace("@cmake@", told["build"]["cmake"])
    before = before.replace("@settings@", "\n".join(f"set({line.replace('=', ' ')})" for line in settings))
    main = (module / application / "src/main.c").read_text()
    return _by_cmake(work, before, "tinyfuse_net m", **{"main.c": main, **_ZEPHYR_HEADERS})


def arduino(module: Path, work: Path) -> str:
    """Builds everything below src/ with only src/ on the include path, at -Os; the sketch is C++."""
    work.mkdir(parents=True)
    (work / "Arduino.h").write_text(_ARDUINO_HEADER)
    (work / "main.cpp").write_text(
        "#include <Arduino.h>\nvoid setup();\nvoid loop();\nint main() { setup(); loop(); }\n"
    )
    objects = []
    for source in (module / "src").rglob("*.c"):
        objects.append(work / f"{source.stem}.o")
        done(["gcc", "-std=gnu11", "-Os", "-I", module / "src", "-c", source, "-o", objects[-1]], work)
    sketch = ["-x", "c++", module / "examples/Selftest/Selftest.ino", work / "main.cpp", "-x", "none"]
    flags = ["-std=gnu++14", "-Os", "-I", work, "-I", module / "src", "-include", "Arduino.h"]
    done(["g++", *flags, *sketch, *objects, "-lm", "-o", "program"], work)
    return done([work / "program"], work).removeprefix("net: ").split(",")[0] + "\n"


def platformio(module: Path, work: Path) -> str:
    """Builds the files that library.json's filter selects."""
    told = yaml.safe_load((module / "library.json").read_text())
    build = told["build"]
    sources = [module / rule[2:-1] for rule in build["srcFilter"] if rule.startswith("+")]
    _with_main(work)
    return compiled([work / "main.c", *sources], work, f"-I{module / build['includeDir']}", *build["flags"])


def cmsis_pack(module: Path, work: Path) -> str:
    """Builds the component from the unpacked .pack."""
    _with_main(work)
    with zipfile.ZipFile(next(module.glob("*.pack"))) as archive:
        archive.extractall(work / "pack")
    files = list(ElementTree.parse(next((work / "pack").glob("*.pdsc"))).iter("file"))
    of = {category: [work / "pack" / each.get("name") for each in files if each.get("category") == category]
          for category in ("sourceC", "include")}  # fmt: skip
    return compiled([work / "main.c", *of["sourceC"]], work, *(f"-I{folder}" for folder in of["include"]))


def csolution(module: Path, work: Path) -> str:
    """Builds the layer's files."""
    _with_main(work)
    layer = yaml.safe_load(next(module.glob("*.clayer.yml")).read_text())["layer"]
    files = [module / each["file"] for group in layer["groups"] for each in group["files"]]
    sources = [file for file in files if file.suffix == ".c"]
    return compiled([work / "main.c", *sources], work, *(f"-I{module / path}" for path in layer["add-path"]))


def esp_idf(module: Path, work: Path) -> str:
    return _by_cmake(work, _ESP_IDF.replace("@module@", str(module)), "net m")


def single_file(module: Path, work: Path) -> str:
    """Builds as C99, as C++17, and with Clang."""
    _with_main(work)
    sources, include = [work / "main.c", module / "net.c"], f"-I{module}"
    as_c = compiled(sources, work, include)
    # designated initializers are of C++20, which every compiler takes in C++17 where it is not pedantic
    as_cpp = ["g++", "-x", "c++", "-std=c++17", *WARNINGS, "-Wno-pedantic"]
    for compiler in (as_cpp, ["clang", "-std=c99", *WARNINGS]):
        done([*compiler, "-O1", include, *sources, "-x", "none", "-lm", "-o", "other"], work)
        assert done([work / "other"], work) == as_c
    return as_c


#: form -> builds a module's folder below another one, and gives what its program prints
BUILDS: dict[str, Callable[[Path, Path], str]] = {
    "cmake": cmake,
    "make": make,
    "meson": meson,
    "zephyr": zephyr,
    "arduino": arduino,
    "platformio": platformio,
    "cmsis-pack": cmsis_pack,
    "csolution": csolution,
    "esp-idf": esp_idf,
    "single-file": single_file,
}
