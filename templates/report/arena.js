/* The arena: addresses against time. */
const PLOT = { left: 64, top: 10, bottom: 34, height: 420 };
let arenaZoom = 1, arenaAt = -1;
const ARENA_PARTS = DATA.figures.memory ? DATA.figures.memory.arena_parts : [];
const BUFFERS = DATA.arena.buffers.map((buffer, n) => ({ ...buffer, n })).sort((a, b) => a.first - b.first || a.offset - b.offset);

const ROLE_COLOURS = { input: 0, output: 4, tensor: 2, ring: 1, stack: 5, scratch: 7, weights: 3, counters: 6 };
const styleOf = (buffer) => `c${ROLE_COLOURS[buffer.role]}`;

/* Offset of a buffer; in a divided arena, from the start of its part. */
function addressText(buffer) {
  const part = ARENA_PARTS.filter((each) => each.start <= buffer.offset).pop();
  return part ? `${number(buffer.offset - part.start)} in ${part.bank}` : number(buffer.offset);
}
function bufferText(buffer) {
  const steps = buffer.first === buffer.last ? `in group ${buffer.first}` : `in groups ${buffer.first} to ${buffer.last}`;
  return `${buffer.name}, ${buffer.what}${buffer.owner ? ` (${plainName(buffer.owner)})` : ""}: ${bytes(buffer.bytes)} at ${addressText(buffer)}, alive ${steps}${buffer.live ? ", at some events of the first" : ""}`;
}
/* Start of each step, in pixels. Steps that are divided into live sets are five times as wide. */
function stepEdges(width) {
  const wide = DATA.arena.live_sets.map((sets) => (sets > 1 ? 5 : 1)), all = wide.reduce((sum, w) => sum + w, 0);
  let at = 0;
  return [0, ...wide.map((w) => { at += w; return (width * at) / all; })];
}
function spansOf(buffer, edges) {
  const left = edges[buffer.first], right = edges[buffer.first + 1], end = edges[buffer.last + 1];
  if (!buffer.live) return [[left, end]];
  const at = (liveSet) => left + ((right - left) * liveSet) / DATA.arena.live_sets[buffer.first];
  const spans = buffer.live.map(([from, to]) => [at(from), at(to + 1)]);
  return right === end ? spans : [...spans, [right, end]];
}
function ticksOf(size) {
  let step = 1;
  while (size / step > 8) step *= 2;
  const found = [];
  for (let address = 0; size - address > step / 3; address += step) found.push(address);
  return [...found, size];
}
function drawArena() {
  const host = byId("arena-plot"), size = Math.max(1, DATA.arena.bytes);
  const width = Math.max(260, (host.clientWidth || 900) * arenaZoom - PLOT.left - 14), edges = stepEdges(width), y = (address) => PLOT.top + PLOT.height * (1 - address / size);
  const drawing = makeSvg("svg", { width: PLOT.left + width + 12, height: PLOT.top + PLOT.height + PLOT.bottom, "aria-hidden": "true" });
  for (const address of ticksOf(size)) {
    drawing.append(makeSvg("path", { class: "axis", d: `M${PLOT.left - 4} ${y(address)}H${PLOT.left + width}` }), makeSvg("text", { x: PLOT.left - 8, y: y(address) + 4, "text-anchor": "end" }, number(address)));
  }
  for (const part of ARENA_PARTS) {
    if (part.start) drawing.append(makeSvg("path", { class: "border", d: `M${PLOT.left - 4} ${y(part.start)}H${PLOT.left + width}` }));
    drawing.append(makeSvg("text", { x: PLOT.left + width, y: y(part.start + part.bytes) + 12, "text-anchor": "end" }, part.bank));
  }
  let labelled = -100;
  for (let step = 0; step + 1 < edges.length; step += 1) {
    const middle = PLOT.left + (edges[step] + edges[step + 1]) / 2;
    if (middle - labelled < 26) continue;
    drawing.append(makeSvg("text", { x: middle, y: PLOT.top + PLOT.height + 15, "text-anchor": "middle" }, String(step)));
    labelled = middle;
  }
  drawing.append(makeSvg("text", { x: PLOT.left + Math.min(width, host.clientWidth || width) / 2, y: PLOT.top + PLOT.height + 29, "text-anchor": "middle" }, "group"));
  drawing.append(makeSvg("defs", {}, makeSvg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse" }, makeSvg("path", { class: "hatch", d: "M0 6L6 0" }))));
  const labels = [];
  BUFFERS.forEach((buffer, place) => {
    const spans = spansOf(buffer, edges), top = y(buffer.offset + buffer.bytes), height = Math.max(1, y(buffer.offset) - top);
    const shape = makeSvg("g", { "data-place": place, class: place === arenaAt ? "on" : null });
    for (const [from, to] of spans) shape.append(makeSvg("rect", { class: styleOf(buffer), x: PLOT.left + from, y: top, width: Math.max(1, to - from), height, rx: Math.min(3, height / 4) }));
    drawing.append(shape);
    const [from, to] = spans.reduce((widest, span) => (span[1] - span[0] > widest[1] - widest[0] ? span : widest));
    const label = [buffer.layer, buffer.layer.split(" ")[0]].find((text) => to - from >= 7 * text.length + 6);
    if (height >= 13 && label) labels.push(makeSvg("text", { class: "in", x: PLOT.left + (from + to) / 2, y: top + height / 2 + 4, "text-anchor": "middle" }, label));
  });
  const shared = sharedOutlines(edges, y);
  drawing.append(makeSvg("g", { class: "over" }, ...shared.map((d) => makeSvg("path", { class: "shared", d })), ...labels));
  host.replaceChildren(drawing);
}
/* Outlines of the bytes that two buffers share while both are alive. */
function sharedOutlines(edges, y) {
  const found = [];
  BUFFERS.forEach((one, n) => {
    const spans = spansOf(one, edges);
    for (let m = n + 1; m < BUFFERS.length && BUFFERS[m].first <= one.last; m += 1) {
      const other = BUFFERS[m], low = Math.max(one.offset, other.offset), high = Math.min(one.offset + one.bytes, other.offset + other.bytes);
      if (low >= high) continue;
      for (const [from, to] of spans) {
        for (const [start, end] of spansOf(other, edges)) {
          const left = Math.max(from, start), right = Math.min(to, end);
          if (left < right) found.push(`M${PLOT.left + left} ${y(high)}H${PLOT.left + right}V${y(low)}H${PLOT.left + left}Z`);
        }
      }
    }
  });
  return found;
}
function drawArenaKey() {
  const used = new Set(BUFFERS.map((buffer) => buffer.role));
  const entries = Object.entries(DATA.arena.roles).filter(([role]) => used.has(role)).map(([role, text]) => make("span", {}, make("i", { class: styleOf({ role }) }), text));
  const edges = stepEdges(1000);
  if (sharedOutlines(edges, (address) => address).length) entries.push(make("span", {}, make("i", { class: "i-shared" }), DATA.arena.shared));
  byId("arena-key").replaceChildren(...entries);
}
function pickBuffer(place) {
  const old = byId("arena-plot").querySelector("g.on"), now = byId("arena-plot").querySelector(`g[data-place="${place}"]`);
  if (old) old.removeAttribute("class");
  arenaAt = place;
  if (!now) return;
  now.setAttribute("class", "on");
  now.parentNode.insertBefore(now, now.parentNode.querySelector("g.over")); /* drawn above its neighbours */
  byId("arena-about").replaceChildren(make("bdi", {}, bufferText(BUFFERS[place])));
}
function startArena() {
  const host = byId("arena-plot"), arena = DATA.arena;
  const proof = arena.lower_bound >= arena.bytes ? "proven minimal" : `at least ${bytes(arena.lower_bound)} are needed`;
  host.setAttribute("aria-label", `Arena of ${bytes(arena.bytes)}, ${proof}: ${count(BUFFERS.length, "buffer")} in ${count(arena.live_sets.length, "group")}. Arrow keys move through the buffers.`);
  byId("arena-about").textContent = `${bytes(arena.bytes)}, ${proof}.`;
  host.addEventListener("mousemove", (event) => {
    const shape = event.target.closest("g[data-place]");
    if (shape) showTip(event, bufferText(BUFFERS[shape.dataset.place])); else hideTip();
  });
  host.addEventListener("mouseleave", hideTip);
  host.addEventListener("click", (event) => { const shape = event.target.closest("g[data-place]"); if (shape) pickBuffer(Number(shape.dataset.place)); });
  host.addEventListener("keydown", (event) => {
    const to = { ArrowRight: arenaAt + 1, ArrowDown: arenaAt + 1, ArrowLeft: arenaAt - 1, ArrowUp: arenaAt - 1, Home: 0, End: BUFFERS.length - 1 }[event.key];
    if (to === undefined || !BUFFERS.length) return;
    event.preventDefault();
    pickBuffer(Math.max(0, Math.min(BUFFERS.length - 1, to)));
  });
  const zoom = (factor) => { arenaZoom = Math.max(1, Math.min(64, arenaZoom * factor)); byId("arena-out").disabled = arenaZoom === 1; drawArena(); };
  byId("arena-in").addEventListener("click", () => zoom(2));
  byId("arena-out").addEventListener("click", () => zoom(0.5));
  byId("arena-out").disabled = true;
  byId("arena-details").addEventListener("toggle", drawBuffers, { once: true });
  drawnAgain.push(drawArena);
  drawArenaKey();
  drawArena();
}
function drawBuffers() {
  const head = ["Buffer", "Role", "Holds", "Offset", "Bytes", "Groups"];
  byId("buffer-table").replaceChildren(make("thead", {}, make("tr", {}, ...head.map((t, n) => make("th", { scope: "col", class: n > 2 ? "n" : "" }, t)))),
    make("tbody", {}, ...BUFFERS.map((b) => make("tr", {}, make("td", {}, b.name), make("td", {}, b.what), make("td", {}, nameOf(b.owner)), cell(addressText(b)), cell(number(b.bytes)), cell(b.first === b.last ? String(b.first) : `${b.first} to ${b.last}`)))));
}
