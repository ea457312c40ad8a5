/* Functions that all parts of the page use. Text from the model is only ever set as text, never as markup. */
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

/* Makes an element with attributes and children; a string child is text. */
function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}
function makeSvg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}
function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}
/* Isolates a name, so that its writing direction does not affect the text around it. */
const nameOf = (text, limit = 60) => {
  const first = text.split(";")[0];
  return make("bdi", { title: text }, first.length > limit ? `${first.slice(0, limit - 3)}...` : first);
};
const plainName = (text) => { const first = text.split(";")[0]; return first.length > 60 ? `${first.slice(0, 57)}...` : first; };

const number = (value) => (value === null || value === undefined ? "-" : value.toLocaleString("en-US"));
const bytes = (value) => `${number(value)} bytes`;
const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
function short(value) {
  if (value === null || value === undefined) return "-";
  if (value >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  return value >= 1e4 ? `${(value / 1e3).toPrecision(3)} k` : number(value);
}
function change(now, before) {
  if (now === null || before === null || before === undefined || !before) return null;
  const share = (100 * (now - before)) / before;
  const text = Math.abs(share) < 0.05 ? "the same" : `${share > 0 ? "+" : "-"}${Math.abs(share).toFixed(1)}\u00a0%`;
  return { text, style: share <= -0.05 ? "better" : "" };
}
const total = (values) => values.reduce((sum, value) => (value === null || sum === null ? null : sum + value), 0);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawnAgain = []; /* functions to be called when the theme or the width changes */
function redraw() { for (const draw of drawnAgain) draw(); }

function showTip(event, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}
function hideTip() { byId("tip").hidden = true; }
