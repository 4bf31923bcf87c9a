// Pointer, wheel and keyboard events; starts the page.

const drag = { active: false, moved: false, x: 0, y: 0 };

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  stopFlight();
  Object.assign(drag, { active: true, moved: false, x: event.offsetX, y: event.offsetY });
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const { offsetX, offsetY } = event;
  if (!drag.active) {
    setHover(labelAt(offsetX, offsetY));
    showTooltip(state.hover, offsetX, offsetY);
    return;
  }
  if (!drag.moved && Math.hypot(offsetX - drag.x, offsetY - drag.y) < 4) return;
  if (!drag.moved) {
    drag.moved = true;
    canvas.classList.add("dragging");
    setHover(-1);
    showTooltip(-1);
  }
  moveDisk(toDisk(drag.x, drag.y, 0.96), toDisk(offsetX, offsetY, 0.96));
  drag.x = offsetX;
  drag.y = offsetY;
});
const release = (event) => {
  if (drag.active && !drag.moved && event.type === "pointerup") select(labelAt(event.offsetX, event.offsetY));
  drag.active = false;
  canvas.classList.remove("dragging");
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => {
  setHover(-1);
  showTooltip(-1);
});
canvas.addEventListener("dblclick", (event) => {
  const i = labelAt(event.offsetX, event.offsetY);
  if (i >= 0) goTo(i);
  else flyTo(...toDisk(event.offsetX, event.offsetY, 0.97));
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const wheelPixels = event.deltaY * (event.deltaMode ? 30 : 1);
  zoomBy(Math.exp(-Math.max(-200, Math.min(200, wheelPixels)) / 500), event.offsetX, event.offsetY);
  showTooltip(-1);
}, { passive: false });

const zoomCenter = (factor) => zoomBy(factor, view.width / 2, view.height / 2);
const nudge = (u, v) => moveDisk([0, 0], [u, v]);
const keys = {
  "+": () => zoomCenter(1.3), "=": () => zoomCenter(1.3), "-": () => zoomCenter(1 / 1.3), "0": flyHome,
  ArrowLeft: () => nudge(0.12, 0), ArrowRight: () => nudge(-0.12, 0), ArrowUp: () => nudge(0, 0.12),
  ArrowDown: () => nudge(0, -0.12), Escape: () => select(-1), Enter: () => state.selected >= 0 && goTo(state.selected),
};
canvas.addEventListener("keydown", (event) => {
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  stopFlight();
  keys[event.key]();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === byId("search")) return;
  event.preventDefault();
  byId("search").focus();
});
byId("zoom-in").addEventListener("click", () => zoomCenter(1.5));
byId("zoom-out").addEventListener("click", () => zoomCenter(1 / 1.5));
byId("reset").addEventListener("click", flyHome);
byId("lines").hidden = child.length === 0;
byId("hierarchy").addEventListener("change", (event) => {
  state.lines = event.target.checked;
  redraw();
});
byId("search").addEventListener("input", search);
byId("search").addEventListener("keydown", searchKey);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readTheme();
  redraw();
  drawChart();
});
new ResizeObserver(resize).observe(byId("map"));

readTheme();
drawLegend();
resize();
