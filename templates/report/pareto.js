/* Plans to choose from: RAM (arena and state) against instructions. */
const KEEPS = (DATA.pareto || []).some((point) => point.state_bytes > 0);
const ramOf = (point) => point.arena_bytes + point.state_bytes;
function startPareto() {
  const host = byId("pareto"), points = DATA.pareto;
  if (points === null) { host.append(make("p", { class: "note" }, "With these options there is only one plan.")); return; }
  const known = points.filter((point) => point.predicted_instructions !== null);
  const about = make("div", { id: "pareto-about", role: "status" });
  const rows = points.map((point, n) => make("tr", {}, make("td", {}, make("button", { type: "button", onclick: () => choose(n) }, "Choose")), cell(number(point.arena_bytes)), ...(KEEPS ? [cell(number(point.state_bytes))] : []), cell(number(point.predicted_instructions)),
    cell(`${(100 * point.slower).toFixed(1)} %`), make("td", { class: "n k" }, String(point.groups)), make("td", {}, point.optimize.join(", "))));
  const copies = DATA.figures.memory && DATA.figures.memory.copies.length > 0;
  const arena = copies ? DATA.figures.memory.uncopied_arena_bytes : DATA.figures.arena_bytes;
  let chosen = points.findIndex((point) => ramOf(point) === arena + DATA.figures.state_bytes && point.predicted_instructions === DATA.figures.predicted_instructions);
  const chart = make("div", { class: "chart" });
  const choose = (n) => {
    chosen = n;
    const point = points[n];
    about.replaceChildren(make("p", { class: "status" }, `${bytes(point.arena_bytes)} of arena, ${KEEPS ? `${number(point.state_bytes)} of state, ` : ""}${number(point.predicted_instructions)} instructions predicted (${timeText(milliseconds(point.predicted_instructions))} at ${byId("mhz").value} MHz), ${count(point.groups, "group")}.`),
      make("div", { class: "command mono" }, `${DATA.command} ${point.options[0]}`));
    chart.replaceChildren(...(known.length > 1 ? [frontChart(points, chosen, choose)] : []));
  };
  host.append(chart, about, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of plans" }, make("table", {}, make("thead", {}, make("tr", {},
    ...[["", ""], ["Arena", "n"], ...(KEEPS ? [["State", "n"]] : []), ["Instructions", "n"], ["Slower", "n"], ["Groups", "n k"], ["Taken by --optimize", ""]].map(([title, style]) => make("th", { scope: "col", class: style }, title)))), make("tbody", {}, ...rows))));
  if (copies) host.append(make("p", { class: "hint" }, "Sizes of arenas are without the weights that are copied into them."));
  drawnAgain.push(() => choose(chosen));
  choose(chosen < 0 ? 0 : chosen);
}
function frontChart(points, chosen, choose) {
  const width = Math.max(280, Math.min(760, byId("pareto").clientWidth || 760)), height = 300, left = 66, bottom = 40, top = 34, right = 24;
  const range = (values) => { const low = Math.min(...values), high = Math.max(...values), pad = (high - low || high || 1) * 0.08; return [low - pad, high + pad]; };
  const known = points.map((point, n) => ({ ...point, n })).filter((point) => point.predicted_instructions !== null);
  const [x0, x1] = range(known.map(ramOf)), [y0, y1] = range(known.map((p) => p.predicted_instructions));
  const x = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right), y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - bottom - top);
  const drawing = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "radiogroup", "aria-label": `Plans by ${KEEPS ? "arena and state" : "arena"} and instructions` });
  drawing.append(makeSvg("path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` }));
  for (const share of [0, 0.5, 1]) {
    const vx = x0 + share * (x1 - x0), vy = y0 + share * (y1 - y0);
    drawing.append(makeSvg("text", { x: x(vx), y: height - bottom + 16, "text-anchor": share === 1 ? "end" : "middle" }, short(Math.round(vx))), makeSvg("text", { x: left - 8, y: y(vy) + 4, "text-anchor": "end" }, short(Math.round(vy))));
  }
  drawing.append(makeSvg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, KEEPS ? "arena and state, bytes" : "arena, bytes"), makeSvg("text", { x: 8, y: 14 }, "instructions, predicted"));
  drawing.append(makeSvg("path", { class: "front", d: known.map((p, n) => `${n ? "L" : "M"}${x(ramOf(p))} ${y(p.predicted_instructions)}`).join("") }));
  const move = (from, by) => { const next = known[Math.max(0, Math.min(known.length - 1, from + by))].n; choose(next); byId("pareto").querySelector('[aria-checked="true"]').focus(); };
  known.forEach((point, place) => {
    const on = point.n === chosen;
    drawing.append(makeSvg("g", { class: `point${point.optimize.length ? " taken" : ""}`, role: "radio", "aria-checked": String(on), tabindex: on ? 0 : -1,
      "aria-label": `${bytes(ramOf(point))}, ${number(point.predicted_instructions)} instructions${point.optimize.length ? `, --optimize ${point.optimize.join(", ")}` : ""}`,
      onclick: () => choose(point.n),
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (by) { event.preventDefault(); move(place, by); }
      } },
    makeSvg("circle", { cx: x(ramOf(point)), cy: y(point.predicted_instructions), r: on ? 8 : 6 }),
    point.optimize.length ? makeSvg("text", { x: x(ramOf(point)) + (x(ramOf(point)) > width * 0.8 ? -12 : 12), y: y(point.predicted_instructions) - 8, "text-anchor": x(ramOf(point)) > width * 0.8 ? "end" : "start" }, point.optimize.join(", ")) : ""));
  });
  return drawing;
}
