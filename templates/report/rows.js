/* Animation of a row group: a strip of rows for each tensor, event by event. */
const STRIP = 20, GAP = 28;

class Loop {
  constructor(data) {
    this.data = data;
    this.at = 0;
    this.made = [];
    /* numbers of rows of each stage at every 64th event; between these they are counted */
    this.marks = [];
    const rows = new Array(data.lanes.length - data.outside).fill(0);
    data.order.forEach((stage, event) => {
      if (event % 64 === 0) this.marks.push([...rows]);
      this.count(rows, stage);
    });
    if (data.order.length % 64 === 0) this.marks.push([...rows]);
  }
  /* Counts the rows that a call of a stage makes: the next one, or several. */
  count(rows, stage) {
    const lane = this.data.lanes[stage + this.data.outside];
    rows[stage] = Math.min(rows[stage] + lane.at_once, lane.rows);
  }
  /* Rows of each stage before an event. */
  rowsBefore(event) {
    const mark = Math.min(Math.floor(event / 64), this.marks.length - 1), rows = [...this.marks[mark]];
    for (let e = 64 * mark; e < event; e += 1) this.count(rows, this.data.order[e]);
    return rows;
  }
  /* Oldest row of a lane that is still needed, before an event. */
  needed(lane, event) {
    const changes = lane.needed;
    let low = 0, high = changes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (changes[middle][0] <= event) low = middle + 1; else high = middle;
    }
    return low ? changes[low - 1][1] : 0;
  }
  /* State of each lane: rows that exist, oldest row needed, rows being made, rows being read. */
  state(event) {
    const { lanes, outside, order } = this.data, rows = this.rowsBefore(event), now = event < order.length ? order[event] : null;
    const states = lanes.map((lane, n) => ({ there: n < outside ? lane.rows : rows[n - outside], oldest: lane.needed.length ? this.needed(lane, event) : 0, making: null, reading: null }));
    if (now !== null) {
      states[now + outside].making = [rows[now], Math.min(rows[now] + lanes[now + outside].at_once, lanes[now + outside].rows)];
      for (const read of lanes[now + outside].reads) states[read.lane].reading = [read.first[rows[now]], read.end[rows[now]]];
    }
    return states;
  }
  text(event) {
    const { lanes, outside, order } = this.data;
    if (event >= order.length) return `All ${number(order.length)} rows are computed.`;
    const states = this.state(event), lane = lanes[order[event] + outside], made = states[order[event] + outside].making;
    const span = ([first, end]) => (end - first > 1 ? `rows ${first} to ${end - 1}` : end > first ? `row ${first}` : "no row");
    const reads = lane.reads.map((read) => {
      return `${span(states[read.lane].reading)} of ${plainName(lanes[read.lane].name)}`;
    });
    return `Step ${number(event + 1)} of ${number(order.length)}: ${lane.kind} computes ${span(made)} of ${plainName(lane.name)}${reads.length ? ` from ${reads.join(" and ")}` : ""}.`;
  }
}
function laneText(lane) {
  const where = lane.ring === null ? "whole" : `${lane.slides ? "sliding ring" : "ring"} of ${lane.ring} of ${count(lane.rows, "row")}`;
  return `${where}, ${bytes(lane.row_bytes)} per row`;
}
function drawLoop(canvas, loop, event) {
  const lanes = loop.data.lanes, width = canvas.clientWidth || 800, height = lanes.length * (STRIP + GAP) + 6, scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d"), shades = {};
  for (const name of ["ink", "soft", "line", "hot", "held", "used", "read", "card"]) shades[name] = colour(`--${name}`);
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, height);
  const states = loop.state(event);
  lanes.forEach((lane, n) => {
    const top = n * (STRIP + GAP) + GAP - 6, state = states[n], cell = width / lane.rows;
    pen.font = "12.5px system-ui, sans-serif";
    pen.textBaseline = "alphabetic";
    pen.textAlign = "right";
    pen.fillStyle = shades.soft;
    const about = laneText(lane), room = width - pen.measureText(about).width - 14;
    if (width > 500) pen.fillText(about, width, top - 5);
    pen.textAlign = "left";
    pen.fillStyle = state.making === null ? shades.ink : shades.hot;
    const label = `${lane.kind === null ? "" : `${lane.kind}  `}${plainName(lane.name)}`;
    pen.save();
    pen.beginPath();
    pen.rect(0, top - 20, width > 500 ? room : width, 20);
    pen.clip();
    pen.fillText(label, 0, top - 5);
    pen.restore();
    const fill = (from, to, shade) => {
      if (to <= from) return;
      pen.fillStyle = shade;
      const gap = cell > 4 ? 1 : 0;
      for (let row = from; row < to; row += 1) pen.fillRect(row * cell, top, Math.max(0.6, cell - gap), STRIP);
    };
    pen.strokeStyle = shades.line;
    pen.strokeRect(0.5, top + 0.5, width - 1, STRIP - 1);
    const oldest = lane.needed.length ? Math.min(state.oldest, state.there) : 0;
    fill(0, oldest, shades.used);
    fill(oldest, state.there, shades.held);
    if (state.making !== null) fill(...state.making, shades.hot);
    if (state.reading && state.reading[1] > state.reading[0]) {
      pen.strokeStyle = shades.read;
      pen.lineWidth = 2;
      pen.strokeRect(state.reading[0] * cell, top - 1, Math.max(2, (state.reading[1] - state.reading[0]) * cell), STRIP + 2);
      pen.lineWidth = 1;
    }
  });
}

function startRows() {
  const host = byId("rows-body"), playable = DATA.loops.filter((loop) => loop.order);
  if (!DATA.loops.length) { host.append(make("p", { class: "note" }, "No group of several operators runs by rows.")); return; }
  const left = DATA.loops.filter((loop) => !loop.order);
  if (left.length) host.append(make("p", { class: "note" }, `Not shown: ${left.map((loop) => `group ${loop.group} (${number(loop.events)} rows)`).join(", ")}; the page would be too large.`));
  if (!playable.length) return;
  const first = playable.reduce((most, loop) => (loop.lanes.length > most.lanes.length ? loop : most));
  const select = make("select", { "aria-label": "Row group" }, ...playable.map((loop, n) => make("option", { value: n, selected: loop === first }, `Group ${loop.group}: ${loop.lanes.length - loop.outside} operators, ${number(loop.events)} rows`)));
  const play = make("button", { type: "button", class: "main", id: "play" }, "Play");
  const back = make("button", { type: "button", "aria-label": "One event back" }, "\u2039"), on = make("button", { type: "button", id: "step", "aria-label": "One event on" }, "\u203a");
  const slider = make("input", { type: "range", min: 0, value: 0, "aria-label": "Event" });
  const speed = make("select", { "aria-label": "Speed" }, ...[[2, "slow"], [8, "normal"], [40, "fast"], [200, "fastest"]].map(([rate, name]) => make("option", { value: rate, selected: rate === 8 }, name)));
  const canvas = make("canvas", { id: "strips", role: "img" }), about = make("p", { class: "status", id: "rows-about" });
  const key = make("div", { class: "key" }, ...[["i-hot", "being computed"], ["i-held", "in memory, still needed"], ["i-used", "dropped"], ["i-none", "not computed yet"], ["i-read", "being read"]].map(([style, text]) => make("span", {}, make("i", { class: style }), text)));
  host.append(make("div", { class: "player" }, select), canvas, make("div", { class: "player" }, play, back, on, slider, speed), about, key);
  let loop = null, playing = false, began = 0, from = 0;
  const show = (event) => {
    loop.at = Math.max(0, Math.min(loop.data.order.length, event));
    slider.value = loop.at;
    const text = loop.text(loop.at);
    slider.setAttribute("aria-valuetext", text);
    canvas.setAttribute("aria-label", `Rows of group ${loop.data.group}. ${text}`);
    about.replaceChildren(make("bdi", {}, text));
    drawLoop(canvas, loop, loop.at);
  };
  const stop = () => { playing = false; play.textContent = "Play"; };
  const frame = (now) => {
    if (!playing) return;
    const event = from + Math.floor(((now - began) / 1000) * Number(speed.value));
    if (event !== loop.at) show(event);
    if (loop.at >= loop.data.order.length) stop(); else requestAnimationFrame(frame);
  };
  const start = () => {
    if (loop.at >= loop.data.order.length) show(0);
    playing = true; play.textContent = "Pause"; from = loop.at; began = performance.now();
    requestAnimationFrame(frame);
  };
  const choose = () => { stop(); loop = new Loop(playable[Number(select.value)]); slider.max = loop.data.order.length; show(Math.floor(loop.data.order.length / 3)); };
  play.addEventListener("click", () => (playing ? stop() : start()));
  back.addEventListener("click", () => { stop(); show(loop.at - 1); });
  on.addEventListener("click", () => { stop(); show(loop.at + 1); });
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  speed.addEventListener("change", () => { from = loop.at; began = performance.now(); });
  select.addEventListener("change", choose);
  drawnAgain.push(() => show(loop.at));
  choose();
}
