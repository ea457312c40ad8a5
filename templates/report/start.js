/* Everything begins here: the parts are drawn from top to bottom. */
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
