/* The graph as a list of operators with lanes for the tensors between them. The page contains only the visible rows, so
   that ten thousand operators scroll as smoothly as ten. */
const ROW = 28, LANE = 13, MOST_LANES = 12;

/* Gives each operator's output the first lane that is free from its row to its last reader's. */
function layOut(operators) {
  const last = operators.map((_, row) => row);
  operators.forEach((op, row) => op.reads.forEach((from) => { last[from] = Math.max(last[from], row); }));
  const until = [], edges = [];
  operators.forEach((op, row) => {
    if (last[row] === row) return;
    let lane = until.findIndex((end) => end <= row);
    if (lane < 0) lane = until.length;
    until[lane] = last[row];
    edges.push({ from: row, to: last[row], lane, readers: [] });
  });
  const ofRow = new Map(edges.map((edge) => [edge.from, edge]));
  operators.forEach((op, row) => op.reads.forEach((from) => ofRow.get(from) && ofRow.get(from).readers.push(row)));
  return { edges, ofRow, lanes: Math.min(MOST_LANES, Math.max(1, until.length)) };
}

class GraphList {
  constructor(host, title, first, choose) {
    this.choose = choose;
    this.select = make("select", { "aria-label": `${title}: after which rewrite`, onchange: () => this.show(Number(this.select.value)) });
    DATA.steps.forEach((step, n) => this.select.append(make("option", { value: n }, stepName(step, n))));
    this.size = make("span", { class: "hint" });
    this.list = make("div", { class: "list", tabindex: "0", role: "listbox", "aria-label": title, onscroll: () => this.draw(), onkeydown: (e) => this.key(e) });
    this.space = make("div", { class: "space" });
    this.list.append(this.space);
    host.append(make("div", { class: "tools" }, this.select, this.size), this.list);
    this.select.value = first;
    this.show(first);
  }
  show(step) {
    this.operators = DATA.steps[step].operators;
    this.plan = layOut(this.operators);
    this.at = -1;
    this.size.textContent = count(this.operators.length, "operator");
    this.space.style.height = `${this.operators.length * ROW}px`;
    this.list.scrollTop = 0;
    this.draw();
  }
  /* Draws the rows in the window and a few around it; all rows for a printer. */
  draw(all = false) {
    const top = all ? 0 : Math.max(0, Math.floor(this.list.scrollTop / ROW) - 4);
    const end = Math.min(this.operators.length, all ? 600 : top + Math.ceil((this.list.clientHeight || 400) / ROW) + 8);
    const left = 10 + this.plan.lanes * LANE + 6;
    const rows = [this.lines(top, end)];
    for (let row = top; row < end; row += 1) rows.push(this.row(row, left));
    this.space.replaceChildren(...rows);
  }
  row(row, left) {
    const op = this.operators[row], selected = row === this.at;
    const element = make("div", { class: "op", role: "option", id: `${this.list.getAttribute("aria-label").replace(/\W/g, "")}-${row}`, "aria-selected": String(selected),
      "aria-setsize": this.operators.length, "aria-posinset": row + 1, onclick: () => this.pick(row) },
    make("span", { class: "kind" }, op.kind), make("span", { class: "name" }, nameOf(op.name, 80)),
    op.group === undefined || op.group === null ? null : make("span", { class: `chip c${op.group % 8}` }, `group ${op.group}`));
    element.style.top = `${row * ROW}px`;
    element.style.paddingLeft = `${left}px`;
    return element;
  }
  lines(top, end) {
    const x = (lane) => 10 + Math.min(lane, MOST_LANES - 1) * LANE, y = (row) => row * ROW + ROW / 2 - top * ROW;
    const height = (end - top) * ROW, parts = [];
    for (const edge of this.plan.edges) {
      if (edge.from >= end || edge.to < top) continue;
      const path = [`M${x(edge.lane)} ${y(Math.max(edge.from, top - 1))}V${y(Math.min(edge.to, end))}`];
      for (const row of edge.readers) {
        const own = this.plan.ofRow.get(row), to = x(own ? own.lane : 0);
        if (row >= top && row < end && to !== x(edge.lane)) path.push(`M${x(edge.lane)} ${y(row) - 12}Q${x(edge.lane)} ${y(row)} ${to} ${y(row)}`);
      }
      const line = makeSvg("path", { d: path.join("") });
      line.style.cssText = `fill:none;stroke:var(--soft);stroke-width:1.5;opacity:0.7`;
      parts.push(line);
    }
    for (let row = top; row < end; row += 1) {
      const own = this.plan.ofRow.get(row), dot = makeSvg("circle", { cx: x(own ? own.lane : 0), cy: y(row), r: 4 });
      dot.style.fill = row === this.at ? "var(--hot)" : "var(--accent)";
      parts.push(dot);
    }
    const drawing = makeSvg("svg", { class: "lanes", width: 10 + this.plan.lanes * LANE, height, "aria-hidden": "true" }, ...parts);
    drawing.style.top = `${top * ROW}px`;
    return drawing;
  }
  key(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1), last = this.operators.length - 1;
    const to = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.pick(Math.max(0, Math.min(last, to)));
  }
  pick(row) {
    this.mark(row);
    this.choose(this, this.operators[row]);
  }
  mark(row) {
    this.at = row;
    if (row >= 0) {
      const y = row * ROW;
      if (y < this.list.scrollTop || y + ROW > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = y - this.list.clientHeight / 3;
    }
    this.draw();
    const chosen = this.space.querySelector('[aria-selected="true"]');
    if (chosen) this.list.setAttribute("aria-activedescendant", chosen.id);
    else this.list.removeAttribute("aria-activedescendant");
  }
}
function stepName(step, n) {
  if (n === 0) return DATA.steps.length === 1 ? "as read, and generated" : "as read";
  const name = step.name === "schedule" ? "as scheduled" : `after ${step.name}`;
  return n === DATA.steps.length - 1 ? `${name} (generated)` : name;
}
function startGraph() {
  const lists = [];
  const choose = (list, op) => {
    for (const other of lists) if (other !== list) other.mark(op.index < 0 ? -1 : other.operators.findIndex((each) => each.index === op.index));
    const place = op.index < 0 ? "made by a rewrite" : `#${op.index} in the file`;
    byId("graph-about").replaceChildren(`${op.kind}, ${place}: `, nameOf(op.name, 200), ` -> ${op.makes}`);
  };
  lists.push(new GraphList(byId("graph-left"), "Graph before", 0, choose), new GraphList(byId("graph-right"), "Graph after", DATA.steps.length - 1, choose));
  if (DATA.steps_left_out) {
    byId("graph-note").hidden = false;
    byId("graph-note").textContent = `${count(DATA.steps_left_out, "step")} between the first and the last left out: the page would be too large.`;
  }
  addEventListener("beforeprint", () => lists.forEach((list) => list.draw(true)));
  addEventListener("afterprint", () => lists.forEach((list) => list.draw()));
  drawnAgain.push(() => lists.forEach((list) => list.draw()));
  const saved = DATA.figures.rewrites;
  if (!saved.length) return;
  byId("rewrites").append(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of rewrites" }, make("table", {},
    make("thead", {}, make("tr", {}, ...["Rewrite", "Operators", "MACs saved", "Weights saved", "Copies saved"].map((t, n) => make("th", { scope: "col", class: n > 1 ? "n" : "" }, t)))),
    make("tbody", {}, ...saved.map((one) => make("tr", {}, make("td", {}, one.pass), make("td", {}, one.what), cell(number(one.macs_saved)), cell(number(one.weight_bytes_saved)), cell(number(one.copied_bytes_saved))))))));
}
