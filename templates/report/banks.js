/* Memory banks, if the module has some. */
function bankHolds(bank) {
  const held = ["arena", "state"].filter((what) => bank[`${what}_bytes`]);
  if (DATA.figures.memory.arena_parts.length && bank.arena_bytes) held[0] = `part of the arena, ${bytes(bank.arena_bytes)}`;
  if (bank.layers.length) held.push(`weights of ${count(bank.layers.length, "layer")}`);
  return held.join(", ") || "nothing";
}
function drawBanks() {
  const memory = DATA.figures.memory;
  if (!memory) return;
  const titles = ["Bank", "Holds", "Bytes used", "of", "Arena bytes loaded and stored, predicted", "Weight bytes loaded, predicted", "without copies"];
  const head = make("thead", {}, make("tr", {}, ...titles.map((title, n) => make("th", { scope: "col", class: n > 1 ? "n" : "" }, title))));
  const rows = memory.banks.map((bank) => make("tr", {}, make("td", {}, `${bank.name}, ${bank.slow ? "slow " : bank.fast ? "fast " : ""}${bank.kind === "ram" ? "RAM" : "flash"}`),
    make("td", {}, bankHolds(bank)), cell(number(bank.used_bytes)), cell(number(bank.bytes)), cell(number(bank.arena_traffic)), cell(number(bank.weight_loads)), cell(number(bank.uncopied_weight_loads))));
  if (memory.code) rows.push(make("tr", {}, make("td", {}, `${memory.code.name}, ${memory.code.kind === "ram" ? "RAM" : "flash"}`),
    make("td", {}, "code"), cell("-"), cell(number(memory.code.bytes)), cell("-"), cell("-"), cell("-")));
  const copies = memory.copies.length
    ? `Each inference copies ${bytes(memory.copied_bytes)} of weights into the arena before they are read, for ${count(memory.copies.length, "group")}; without copies the arena would take ${bytes(memory.uncopied_arena_bytes)}.`
    : "No weights are copied into the arena.";
  byId("banks-body").replaceChildren(make("h3", {}, "Memory banks"),
    make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of memory banks" }, make("table", {}, head, make("tbody", {}, ...rows))),
    make("p", { class: "lead after" }, copies));
}
