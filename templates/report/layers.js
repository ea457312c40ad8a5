/* Cards, clock, and the table of layers. */
const MOST_ROWS = 300;
const OPERATORS = DATA.layers.flatMap((group) => group.operators.map((op) => ({ ...op, group: group.group })));

function card(label, value, unit, ...more) {
  return make("div", { class: "card" }, make("div", { class: "label" }, label),
    make("div", { class: "value" }, value, " ", make("span", { class: "unit" }, unit)),
    make("div", { class: "more" }, ...more));
}
function besideUnfused(now, before, unit) {
  const found = change(now, before);
  if (!found) return ["not known unfused"];
  return [`${short(before)}${unit} unfused: `, make("span", { class: found.style }, found.text)];
}
/* Figures of the whole model, beside those of a sliding window's step. */
function besideWhole(figures) {
  const { step, frames, whole_macs: macs, whole_arena_bytes: arena, whole_state_bytes: state } = figures.window;
  const ram = arena === null ? "" : `, arena ${number(arena)}${state ? ` and state ${number(state)}` : ""} bytes`;
  return [`${short(macs)} MACs${ram}; each step brings ${number(step)} of ${count(frames, "frame")}`];
}
function milliseconds(instructions) {
  const mhz = Number(byId("mhz").value), cpi = Number(byId("cpi").value);
  if (instructions === null || !(mhz > 0) || !(cpi > 0)) return null;
  return (instructions * cpi) / (mhz * 1e3);
}
const timeText = (ms) => (ms === null ? "-" : ms >= 1 ? `${number(Number(ms.toPrecision(3)))} ms` : `${Number((1e3 * ms).toPrecision(3))} µs`);

function drawCards() {
  const figures = DATA.figures, known = figures.known_instructions, ms = timeText(milliseconds(known)).split(" ");
  const without = figures.not_predicted.map((each) => `without ${each.operator}: ${each.reason}`);
  const proof = figures.placement_optimal ? "proven minimal; " : `at least ${number(figures.arena_lower_bound)}; `;
  const cards = [
    card("Arena", number(figures.arena_bytes), "bytes", proof, ...besideUnfused(figures.arena_bytes, figures.unfused_arena_bytes, "")),
    figures.state_bytes ? card("State of a stream", number(figures.state_bytes), "bytes", "beside the arena") : null,
    figures.window ? card("Whole model", short(figures.window.whole_predicted_instructions), "instructions", ...besideWhole(figures)) : null,
    card("Flash", number(figures.weight_bytes + figures.code_bytes), "bytes",
      `weights ${number(figures.weight_bytes)}, code ${number(figures.code_bytes)}${figures.code_bytes_measured ? ` measured (${number(figures.estimated_code_bytes)} estimated)` : " estimated"}`),
    card("Instructions, predicted", short(known), "", ...(without.length ? without : besideUnfused(known, DATA.unfused.instructions, ""))),
    card("Time", ms[0], ms[1] || "", `at ${byId("mhz").value} MHz, ${byId("cpi").value === "1" ? "1 cycle" : `${byId("cpi").value} cycles`} per instruction`),
    figures.longest_step ? card("Longest step", short(figures.longest_step.predicted_instructions), "instructions", `predicted, ${figures.longest_step.operator}, group ${figures.longest_step.group}`) : null,
    card("MACs", short(figures.macs), "", figures.macs === figures.model_macs ? "as the model has them" : `of the model's ${short(figures.model_macs)}`),
    card("Stack, at most", number(DATA.stack_bytes), "bytes", "verify measures it"),
  ];
  byId("cards").replaceChildren(...cards.filter((each) => each !== null));
}

const LAYER_COLUMNS = ["Group, operator", "Kernel", "MACs", "Weights", "Instructions", "Unfused", "Time", "Traffic", "Unfused traffic"];
const LAYER_STYLES = ["", "k", "n k", "n k", "n", "n", "n", "n", "n"]; /* k: left out on a narrow page */
function layerHead() {
  return make("thead", {}, make("tr", {}, ...LAYER_COLUMNS.map((title, n) => make("th", { scope: "col", class: LAYER_STYLES[n] }, title))));
}
/* Sum of a figure without fusion; parts of an operator that a rewrite split count with the first one. */
const unfused = (operators, key) => total(operators.filter((op) => op.unfused).map((op) => op.unfused[key]));
function groupRow(group) {
  const now = group.instructions, before = unfused(group.operators, "instructions");
  const how = group.operators.length === 1 ? "" : group.by_row ? `, ${group.operators.length} operators by rows` : `, ${group.operators.length} operators`;
  return make("tr", { class: "group" }, make("td", {}, `Group ${group.group}${how}`), make("td", { class: "k" }),
    cell(number(total(group.operators.map((op) => op.macs))), null, "n k"), cell(number(total(group.operators.map((op) => op.weight_bytes))), null, "n k"),
    cell(number(now)), cell(number(before)), cell(timeText(milliseconds(now))), cell(number(group.traffic_bytes)), cell(number(group.unfused_traffic_bytes)));
}
function operatorRow(op, largest) {
  const place = op.index < 0 ? "made by a rewrite" : `#${op.index}`;
  const meter = make("span", { class: "meter", "aria-hidden": "true" }, make("i"));
  meter.firstChild.style.width = `${(100 * (op.instructions || 0)) / largest}%`;
  return make("tr", {},
    make("td", { class: "op" }, op.kind, make("span", { class: "sub" }, `${place} `, nameOf(op.name, 40)), make("span", { class: "sub mono" }, op.makes)),
    make("td", { class: "k" }, make("span", { class: "sub mono" }, op.kernel)),
    cell(number(op.macs), null, "n k"), cell(number(op.weight_bytes), null, "n k"), cell(number(op.instructions), meter), cell(op.unfused ? number(op.unfused.instructions) : ""),
    cell(timeText(milliseconds(op.instructions))), cell(""), cell(number(op.traffic_bytes)));
}
const cell = (text, more = null, style = "n") => make("td", { class: style }, text, more);

let mostRows = MOST_ROWS;
function drawLayers() {
  const order = byId("layers-order").value, largest = OPERATORS.reduce((most, op) => Math.max(most, op.instructions || 0), 1);
  const rows = [];
  if (order === "run") {
    for (const group of DATA.layers) {
      if (rows.length >= mostRows) break;
      rows.push(groupRow(group), ...group.operators.map((op) => operatorRow(op, largest)));
    }
  } else {
    const sorted = [...OPERATORS].sort((a, b) => (b[order] || 0) - (a[order] || 0)).slice(0, mostRows);
    rows.push(...sorted.map((op) => operatorRow(op, largest)));
  }
  byId("layer-table").replaceChildren(layerHead(), make("tbody", {}, ...rows));
  const there = order === "run" ? OPERATORS.length + DATA.layers.length : OPERATORS.length;
  byId("layers-more").replaceChildren(...(rows.length < there
    ? [make("button", { type: "button", onclick: () => { mostRows = Infinity; drawLayers(); } }, `Show all ${number(OPERATORS.length)} operators`)] : []));
}

function drawFlash() {
  const figures = DATA.figures, parts = [["code", figures.code_bytes, figures.code_bytes_measured ? "measured, linked at -O2" : "estimated: no compiler measured it"]];
  const weights = DATA.layers.map((group) => [`weights of group ${group.group}`, total(group.operators.map((op) => op.weight_bytes))]).filter((part) => part[1]);
  weights.sort((a, b) => b[1] - a[1]);
  const rest = weights.splice(7);
  if (rest.length) weights.push([`weights of ${rest.length} other groups`, rest.reduce((sum, part) => sum + part[1], 0)]);
  parts.push(...weights.map((part) => [...part, "const arrays"]));
  const sum = parts.reduce((all, part) => all + part[1], 0), stacked = figures.code_bytes + figures.weight_bytes;
  const bar = make("div", { class: "stack", "aria-hidden": "true" });
  const body = make("tbody");
  parts.forEach(([name, size, about], n) => {
    const piece = make("i", { class: `c${n % 8}` });
    piece.style.width = `${(100 * size) / sum}%`;
    bar.append(piece);
    body.append(make("tr", {}, make("td", {}, make("span", { class: `chip c${n % 8}` }, "\u00a0\u00a0"), " ", name), cell(number(size)),
      cell(`${((100 * size) / sum).toFixed(1)} %`), make("td", {}, about)));
  });
  const shared = sum - stacked;
  byId("flash-body").replaceChildren(bar, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of flash" },
    make("table", {}, make("thead", {}, make("tr", {}, ...["Section", "Bytes", "Share", ""].map((t, n) => make("th", { scope: "col", class: n === 1 || n === 2 ? "n" : "" }, t)))), body)),
  make("p", { class: "lead after" }, `${bytes(stacked)} of flash together${shared > 0 ? `; ${bytes(shared)} less than the sum of the parts, because arrays that several layers share are stored once` : ""}. `
    + `With optimization the stack takes at most ${bytes(DATA.stack_bytes)}, the bound in the header; verify measures it, and fails if it is more.`));
}

function drawAdvice() {
  const items = DATA.advice.map((found) => make("div", { class: "item" }, make("strong", {}, found.topic), ": ", make("bdi", {}, `${found.operator} ${found.message}`),
    make("div", { class: "sub" }, found.hint)));
  byId("advice-body").replaceChildren(...(items.length ? items : [make("p", { class: "lead" }, "No change to the model would help.")]));
  byId("fusions").addEventListener("toggle", drawFusions, { once: true });
  if (!DATA.fusions.length) byId("fusions").hidden = true;
}
function drawFusions() {
  const cost = (c) => `${number(c.instructions)} instructions${c.ram_bytes === null ? "" : `, ${bytes(c.ram_bytes)} of RAM`}`;
  byId("fusion-body").replaceChildren(...DATA.fusions.slice(0, 2000).map((f) => make("div", { class: f.taken ? "item" : "item refused" },
    make("strong", {}, f.taken ? "taken" : "refused"), `: group ${f.groups.join(" and ")}, `, f.operators.map((op) => op.kind).join(" + "),
    make("div", { class: "sub" }, f.fused ? `fused ${cost(f.fused)}; apart ${cost(f.apart)}` : ""), make("div", { class: "sub" }, make("bdi", {}, f.reason)))));
}

function drawPorts() {
  const figures = DATA.figures, lines = [];
  const told = Object.entries(figures.options).filter(([key]) => key !== "name").map(([key, value]) => `${key} ${value}`).join(", ");
  for (const [kind, ports] of [["Input", figures.inputs], ["Output", figures.outputs]]) {
    for (const port of ports) {
      const quant = port.scale === null ? "" : `, scale ${Number(port.scale.toPrecision(6))}, zero point ${port.zero_point}`;
      lines.push(make("div", {}, `${kind} `, nameOf(port.name), `: ${port.dtype} ${port.shape.join(" x ") || "scalar"}${quant}${port.name === figures.fed_input ? ", fed by rows" : ""}`));
    }
  }
  const order = figures.reordering;
  if (order) lines.push(make("div", {}, `${order.operators_moved > 1 ? count(order.operators_moved, "operator") : "An operator"} moved: the order of the file would take ${bytes(order.file_order_arena_bytes)} of arena.`));
  byId("ports").replaceChildren(...lines, make("div", {}, make("bdi", {}, `Options: ${told}`)));
  byId("model").textContent = figures.model;
  byId("warnings").replaceChildren(...figures.warnings.map((text) => make("p", { class: "warning" }, make("bdi", {}, text))));
}
