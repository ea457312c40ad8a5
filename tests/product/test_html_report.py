"""`report --html`: the content of the page, and its behaviour for mouse and keys if a Chromium is installed."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import Browser, NoAnswer, find_browser, start_browser
from click.testing import CliRunner
from known_architectures import mobilenet_v2, two_inputs, u_net
from random_graphs import Sketch
from set_limits import set_limits
from sliding_models import padded

from tinyfuse.api.settings import make_options
from tinyfuse.cli.main import main
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.html_report import graph, loops
from tinyfuse.html_report.data import page_data
from tinyfuse.html_report.page import html_page, script_json
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.pareto import pareto_json
from tinyfuse.report.report_json import plan_envelope, report_json
from tinyfuse.targets import load_target

#: names that would end a script, be markup, or turn the text round them
HOSTILE = (
    "</script><script>document.title = 'broken'</script>", "\"'><img src=x onerror=\"document.title='broken'\">",
    "\u202egnidaer fo noitcerid\u2066", "<!-- ${DATA} {{ data }} {% x %}", "line\nof\ttext\u2028\x00]]>", "שלום &amp; \\u003c",
)  # fmt: skip


def hostile_model() -> bytes:
    sketch = Sketch(3)
    x = sketch.value((1, 16, 12, 4), name=HOSTILE[0])
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 8, (3, 3)), (3, 3)), 8, (1, 1))
    z = sketch.add(sketch.relu(sketch.pad(y, 1, 0, 0, 1)), sketch.pad(y, 1, 0, 0, 1))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(z, 4))])


def named(data: bytes, plan_path: str = "m.tflite") -> Plan:
    """The plan of a model whose tensors all have hostile names."""
    source = read_tflite(plan_path, data)
    for tensor in {t for op in source.ops for t in (*op.activations, *op.outputs)}:
        object.__setattr__(tensor, "name", f"{tensor.index} {HOSTILE[tensor.index % len(HOSTILE)]}")
    return compile_graph(replace(source, digest="0" * 64), load_target("cortex-m4"), Options("net"))


def data_of(plan: Plan, pareto: bool = True) -> JsonObject:
    options = Options("net", fusion="none")
    unfused = compile_graph(plan.source, plan.context.target, options)
    figures = plan_envelope(plan) | report_json(plan, unfused.arena_bytes, None)
    front = pareto_json(plan) if pareto else None
    return page_data(plan, unfused, figures, front, "tinyfuse gen m.tflite --target cortex-m4")


@pytest.fixture(scope="module")
def hostile() -> JsonObject:
    return data_of(named(hostile_model(), "dir </title>&<b>.tflite"))


def test_names_from_a_model_are_data_and_nothing_else(hostile: JsonObject) -> None:
    page = html_page(hostile)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 2 == page.lower().count("</script")
    assert json.loads(scripts[0]) == json.loads(json.dumps(hostile))
    assert scripts[0].isascii() and not set("<>&") & set(scripts[0])
    assert "<img" not in page and "<b>" not in page
    shown = json.dumps(hostile, ensure_ascii=False)
    assert "\u202e" not in shown and "\\\\u202e" in shown, "what turns the text is visible"
    assert "שלום" in shown


def test_nothing_is_fetched_and_only_this_script_may_run(hostile: JsonObject) -> None:
    page = html_page(hostile)
    assert set(re.findall(r"https?://[^\"' ]*", page)) == {"http://www.w3.org/2000/svg"}, "a name of XML, no address"
    assert not re.search(r"<(link|img|iframe|script)[^>]*(src|href)=", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none';")
    for kind, element in (
        ("script", page.split("<script>")[1].split("</script>")[0]),
        ("style", page.split("<style>")[1].split("</style>")[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(element.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_page_is_the_same_each_time_and_says_what_report_says(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(hostile_model())
    arguments = ["report", str(tmp_path / "m.tflite"), "--target", "cortex-m55", "--json"]
    pages = []
    for name in ("a.html", "b.html"):
        done = CliRunner().invoke(main, [*arguments, "--html", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]
    told, shown = json.loads(done.output), _data_in(pages[0].decode())
    for key in ("arena_bytes", "macs", "predicted_instructions", "unfused_arena_bytes", "weight_bytes", "buffers"):
        if key in shown["figures"]:
            assert shown["figures"][key] == told[key]
    assert shown["arena"]["bytes"] == told["arena_bytes"]
    assert [buffer["offset"] for buffer in shown["arena"]["buffers"]] == [
        b["offset"] for b in told["buffers"] if b["bytes"]
    ]
    layers = [op for group in shown["layers"] for op in group["operators"]]
    assert abs(sum(op["instructions"] for op in layers) - told["predicted_instructions"]) <= len(layers)
    assert sum(op["macs"] for op in layers) == told["macs"]
    done = CliRunner().invoke(main, [*arguments, "--html", str(tmp_path / "no" / "page.html")])
    assert done.exit_code == 2 and "can't write" in done.output


def _data_in(page: str) -> JsonObject:
    found: JsonObject = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    return found


def test_a_page_says_which_step_is_longest_and_how_many_labels_there_are() -> None:
    plan = named(two_inputs())
    options = replace(plan.options, step=True, labels=(("a", "b"), ("c",)))
    figures = data_of(replace(plan, options=options), pareto=False)["figures"]
    assert figures["longest_step"]["operator"] and figures["options"]["labels"] == 3


def test_every_choice_is_asked_for_by_its_command() -> None:
    plan = named(mobilenet_v2())
    data = data_of(plan)
    assert [bool(point["optimize"]) for point in data["pareto"]].count(False) >= 1
    for point in data["pareto"]:
        words = point["options"][0].split()
        asked = make_options(
            {flag[2:].replace("-", "_"): value for flag, value in zip(words[::2], words[1::2], strict=True)},
            "net",
            plan.context.target,
        )
        found = compile_graph(plan.source, plan.context.target, asked)
        assert (found.arena_bytes, predicted_total(found)) == (point["arena_bytes"], point["predicted_instructions"])


def test_the_loops_are_those_that_run(hostile: JsonObject) -> None:
    """Played from the page's data: no ring ever holds more rows than it has, rows are there when they are read."""
    assert hostile["loops"]
    for loop in hostile["loops"]:
        lanes, outside = loop["lanes"], loop["outside"]
        made = [lane["rows"] for lane in lanes[:outside]] + [0] * (len(lanes) - outside)
        needed = [dict(lane["needed"]) for lane in lanes]
        oldest = [0] * len(lanes)
        for event, stage in enumerate(loop["order"]):
            lane, oldest = lanes[stage + outside], [of.get(event, was) for of, was in zip(needed, oldest, strict=True)]
            for read in lane["reads"]:
                row = made[stage + outside]
                assert oldest[read["lane"]] <= read["first"][row] and read["end"][row] <= made[read["lane"]]
            made[stage + outside] = min(made[stage + outside] + lane["at_once"], lane["rows"])
            if lane["ring"] is not None:
                assert made[stage + outside] - oldest[stage + outside] <= lane["ring"]
        assert all(rows == lane["rows"] for rows, lane in zip(made, lanes, strict=True) if lane["ring"] is None)


def test_what_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "MOST_EVENTS", 5)
    monkeypatch.setattr(graph, "MOST_OPERATORS", 5)
    plan = named(u_net())
    found = loops.loops_data(plan)
    assert found and all(loop["order"] is None and loop["events"] > 5 for loop in found)
    steps, left_out = graph.graph_steps(plan)
    assert len(steps) == 2 and left_out > 0


# --- in a browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed (Debian: chromium)")
    with start_browser(program, tmp_path_factory.mktemp("browser")) as found:
        yield found


def test_a_browser_that_says_nothing_is_started_again(tmp_path: Path) -> None:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed (Debian: chromium)")
    mute = tmp_path / "mute"
    mute.write_text(
        f'#!/bin/sh\n[ -e {tmp_path}/again ] && exec {program} "$@"\n: > {tmp_path}/again\nexec sleep 100\n'
    )
    mute.chmod(0o755)
    with start_browser(str(mute), tmp_path, (3, 60, 60)) as found:
        assert found.value("1 + 1") == 2


def test_a_browser_that_never_answers_is_said_with_its_words(tmp_path: Path) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho no such display >&2\n")
    mute.chmod(0o755)
    with pytest.raises(NoAnswer, match=r"the browser has ended, 3 times: (no such display\s+){3}"):
        start_browser(str(mute), tmp_path, (30, 30, 30))


def _page(folder: Path, data: JsonObject) -> Path:
    file = folder / "report.html"
    file.write_text(html_page(data), encoding="utf-8")
    return file


def text(browser: Browser, selector: str) -> str:
    found: str = browser.value(f"document.querySelector({json.dumps(selector)}).textContent")
    return found


def test_it_works_for_a_mouse(browser: Browser, hostile: JsonObject, tmp_path: Path) -> None:
    browser.open(_page(tmp_path, hostile))
    assert browser.value("document.title") == "net for cortex-m4 - tinyfuse", "no name became a script"
    assert "dir </title>&<b>.tflite" in text(browser, "#model")
    assert f"{hostile['arena']['bytes']:,}" in text(browser, "#cards")
    assert "raffic" not in text(browser, "#cards"), "bytes between groups are no traffic of the arena"
    assert browser.value("document.querySelectorAll('.card .worse').length") == 0
    roles = {buffer["role"] for buffer in hostile["arena"]["buffers"]}
    for role in roles:
        assert hostile["arena"]["roles"][role] in text(browser, "#arena-key")

    before = text(browser, "#cards .card:nth-child(4) .value")
    browser.value(
        "document.getElementById('mhz').value = 160; document.getElementById('clock').dispatchEvent(new Event('input'))"
    )
    assert text(browser, "#cards .card:nth-child(4) .value") != before

    browser.click("#graph-left .op:nth-of-type(2)")
    assert browser.value("document.querySelectorAll('#graph .op[aria-selected=true]').length") == 2, "on both sides"
    assert hostile["steps"][0]["operators"][1]["kind"] in text(browser, "#graph-about")

    browser.click("#arena-in")
    assert not browser.value("document.getElementById('arena-out').disabled")
    browser.click("#arena-plot g[data-place='0'] rect")
    first = min(hostile["arena"]["buffers"], key=lambda buffer: (buffer["first"], buffer["offset"]))
    assert first["name"] in text(browser, "#arena-about")
    assert not browser.value("document.getElementById('tip').hidden")
    browser.click("#arena-details summary")
    buffers = len(hostile["arena"]["buffers"])
    browser.wait(f"document.querySelectorAll('#buffer-table tbody tr').length === {buffers}")

    at = text(browser, "#rows-about")
    browser.click("#step")
    assert text(browser, "#rows-about") != at
    browser.click("#play")
    browser.wait("document.getElementById('play').textContent === 'Pause'")
    at = text(browser, "#rows-about")
    browser.wait(f"document.getElementById('rows-about').textContent !== {json.dumps(at)}")
    browser.click("#play")
    drawn = "document.getElementById('strips').getContext('2d').getImageData(0, 0, 600, 60).data.some((v) => v)"
    assert browser.value(drawn)

    buttons = browser.value("document.querySelectorAll('#pareto tbody button').length")
    assert buttons == len(hostile["pareto"])
    browser.click(f"#pareto tbody tr:nth-child({buttons}) button")
    words = shlex.split(text(browser, "#pareto .command"))
    assert words[:2] == ["tinyfuse", "gen"] and words[-2] in ("--optimize", "--max-ram", "--weights")
    browser.click("#fusions summary")
    browser.wait("document.querySelectorAll('#fusion-body .item').length > 0")
    assert browser.value("[...document.querySelectorAll('h2')].every((h) => h.offsetHeight > 0)")
    assert browser.complaints == []
    assert {address.split("?")[0] for address in browser.requests} <= {(tmp_path / "report.html").as_uri()}


def test_a_sliding_window_is_chosen_by_arena_and_state(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choices' axis is the sum of both, and the whole model is shown for comparison."""
    set_limits(monkeypatch, STEPS=3)
    source = read_tflite("m.tflite", padded(13))
    plan = compile_graph(source, load_target("cortex-m4"), Options("net", slide=2))
    whole = compile_graph(source, load_target("cortex-m4"), Options("net"))
    data = data_of(plan)
    data["figures"]["window"] |= {"whole_arena_bytes": whole.arena_bytes, "whole_state_bytes": 0}
    assert len({point["state_bytes"] for point in data["pareto"]}) > 2
    browser.open(_page(tmp_path, data))
    assert "Whole model" in text(browser, "#cards")
    assert "each step brings 2 of 13 frames" in text(browser, "#cards")
    assert "arena and state, bytes" in text(browser, "#pareto .chart")
    assert f"--optimize {plan.options.optimize}" in text(browser, "#pareto .command")
    columns = browser.value("[...document.querySelectorAll('#pareto th')].map((e) => e.textContent)")
    assert columns[1:4] == ["Arena", "State", "Instructions"]
    for n, point in enumerate(data["pareto"], 1):
        row = browser.value(
            f"[...document.querySelectorAll('#pareto tbody tr:nth-child({n}) td')].map((e) => e.textContent)"
        )
        assert [int(cell.replace(",", "")) for cell in row[1:3]] == [point["arena_bytes"], point["state_bytes"]]
    assert browser.complaints == []


def test_it_works_for_keys(browser: Browser, hostile: JsonObject, tmp_path: Path) -> None:
    browser.open(_page(tmp_path, hostile))
    browser.key("Tab")
    assert text(browser, ":focus") == "To the report"
    browser.value("document.getElementById('arena-plot').focus()")
    browser.key("ArrowRight")
    browser.key("ArrowRight")
    second = text(browser, "#arena-about")
    browser.key("ArrowLeft")
    assert text(browser, "#arena-about") != second
    browser.value("document.querySelector('#graph-right .list').focus()")
    browser.key("End")
    active = (
        "document.getElementById(document.querySelector('#graph-right .list').getAttribute('aria-activedescendant'))"
    )
    assert browser.value(f"{active}.getAttribute('aria-posinset') === {active}.getAttribute('aria-setsize')")
    browser.value("document.querySelector('.chart [role=radio][aria-checked=true]').focus()")
    chosen, last = (
        browser.value(f"document.querySelectorAll('.chart [role=radio]'){end}")
        for end in (".values().toArray().findIndex((e) => e.getAttribute('aria-checked') === 'true')", ".length - 1")
    )
    assert last > 0
    before = text(browser, "#pareto-about")
    browser.key("ArrowLeft" if chosen == last else "ArrowRight")
    assert text(browser, "#pareto-about") != before
    assert browser.value("document.activeElement.getAttribute('aria-checked')") == "true"
    browser.value("document.getElementById('play').focus()")
    browser.key("Enter")
    browser.wait("document.getElementById('play').textContent === 'Pause'")
    unnamed = (
        "[...document.querySelectorAll('button, select, input, canvas, [role=img], [role=region], [role=listbox]')].filter((e) =>"
        " !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label'))).map((e) => e.outerHTML)"
    )
    assert browser.value(unnamed) == []
    assert browser.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_and_can_be_read_in_light_and_dark(
    browser: Browser, hostile: JsonObject, tmp_path: Path, dark: bool
) -> None:
    for width in (1280, 400):
        browser.open(_page(tmp_path, hostile), width, dark)
        assert browser.value("document.documentElement.scrollWidth") <= width, "nothing sticks out"
        wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
        browser.wait(f"{wide}.every((e) => e.classList.contains('more') && !e.previousElementSibling.hidden)")
        assert width == 1280 or browser.value(f"{wide}.length") > 0
        for selector in ("body", ".lead", ".card .more", "button", "td", ".chip.c0", ".chip.c3"):
            assert _contrast(browser, selector) >= 4.5, (selector, width)
    seen = browser.value("getComputedStyle(document.body).backgroundColor")
    browser.click("#theme")
    assert browser.value("getComputedStyle(document.body).backgroundColor") != seen


def _contrast(browser: Browser, selector: str) -> float:
    """Contrast between an element's text and the nearest background below it (WCAG 2: relative luminance)."""
    colours = browser.value(
        f"(() => {{ let e = document.querySelector({json.dumps(selector)}); const ink = getComputedStyle(e).color;"
        " while (e && getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;"
        " return [ink, getComputedStyle(e).backgroundColor]; })()"
    )

    def luminance(colour: str) -> float:
        parts = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def test_it_prints_and_ten_thousand_operators_scroll(browser: Browser, hostile: JsonObject, tmp_path: Path) -> None:
    data = copy.deepcopy(hostile)
    group, op = data["layers"][0], data["layers"][0]["operators"][0]
    data["layers"] = [{**group, "group": n, "operators": [op] * 5} for n in range(2000)]
    row = data["steps"][-1]["operators"][0]
    many = [{**row, "index": n, "reads": [n - 1] if n else []} for n in range(10_000)]
    data["steps"] = [{"name": "read", "operators": many}, {"name": "schedule", "operators": many}]
    buffer = data["arena"]["buffers"][0]
    data["arena"] |= {
        "live_sets": [1] * 10_000,
        "buffers": [{**buffer, "first": n, "last": n, "live": None} for n in range(10_000)],
    }
    browser.open(_page(tmp_path, data))
    assert browser.value("document.querySelectorAll('#graph .op').length") < 100, "only what is seen is drawn"
    browser.value("document.querySelector('#graph-left .list').focus()")
    browser.key("End")
    assert "#9999" in text(browser, "#graph-about")
    browser.open(_page(tmp_path, hostile))
    assert browser.pdf().startswith(b"%PDF")
    assert browser.complaints == []


def test_what_a_script_element_may_not_hold_is_escaped() -> None:
    assert script_json({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'
