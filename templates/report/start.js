/* Entry point: draws the parts from top to bottom. */
function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function showTheme() {
  byId("theme").textContent = dark() ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`);
  redraw();
}
byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; showTheme(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
byId("clock").addEventListener("input", () => { drawCards(); drawLayers(); });
byId("clock").addEventListener("submit", (event) => event.preventDefault());
byId("layers-order").addEventListener("change", drawLayers);
let widthOfPage = innerWidth;
addEventListener("resize", () => { if (innerWidth !== widthOfPage) { widthOfPage = innerWidth; redraw(); } });

/* Adds a hint and fading edges to tables that are wider than the page. */
function markScrolls() {
  for (const host of document.querySelectorAll(".scroll")) {
    const wide = host.scrollWidth > host.clientWidth + 1;
    host.classList.toggle("more", wide && host.scrollLeft + host.clientWidth < host.scrollWidth - 1);
    let hint = host.previousElementSibling;
    if (!hint || !hint.classList.contains("sideways")) {
      hint = make("p", { class: "sideways", hidden: true }, "Wider than the page: scroll it sideways \u2192");
      host.before(hint);
    }
    hint.hidden = !wide;
  }
}
addEventListener("scroll", (event) => { if (event.target.classList && event.target.classList.contains("scroll")) markScrolls(); }, true);
new ResizeObserver(markScrolls).observe(document.body);

drawPorts();
drawCards();
drawLayers();
startGraph();
startArena();
startRows();
startPareto();
drawFlash();
drawBanks();
drawAdvice();
showTheme();
document.documentElement.dataset.ready = "yes";
