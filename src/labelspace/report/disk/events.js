// Pointer, wheel and keys; then the page starts.

const drag = { on: false, far: false, x: 0, y: 0 };

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  land();
  Object.assign(drag, { on: true, far: false, x: event.offsetX, y: event.offsetY });
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  const { offsetX, offsetY } = event;
  if (!drag.on) {
    point(labelAt(offsetX, offsetY));
    tell(seen.hover, offsetX, offsetY);
    return;
  }
  if (!drag.far && Math.hypot(offsetX - drag.x, offsetY - drag.y) < 4) return;
  if (!drag.far) {
    drag.far = true;
    canvas.classList.add("dragging");
    point(-1);
    tell(-1);
  }
  carry(toDisk(drag.x, drag.y, 0.96), toDisk(offsetX, offsetY, 0.96));
  drag.x = offsetX;
  drag.y = offsetY;
});
const release = (event) => {
  if (drag.on && !drag.far && event.type === "pointerup") choose(labelAt(event.offsetX, event.offsetY));
  drag.on = false;
  canvas.classList.remove("dragging");
};
canvas.addEventListener("pointerup", release);
canvas.addEventListener("pointercancel", release);
canvas.addEventListener("pointerleave", () => {
  point(-1);
  tell(-1);
});
canvas.addEventListener("dblclick", (event) => {
  const i = labelAt(event.offsetX, event.offsetY);
  if (i >= 0) goTo(i);
  else flyTo(...toDisk(event.offsetX, event.offsetY, 0.97));
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const pixelsTurned = event.deltaY * (event.deltaMode ? 30 : 1);
  zoomBy(Math.exp(-Math.max(-200, Math.min(200, pixelsTurned)) / 500), event.offsetX, event.offsetY);
  tell(-1);
}, { passive: false });

const zoomMiddle = (factor) => zoomBy(factor, view.width / 2, view.height / 2);
const nudge = (u, v) => carry([0, 0], [u, v]);
const keys = {
  "+": () => zoomMiddle(1.3), "=": () => zoomMiddle(1.3), "-": () => zoomMiddle(1 / 1.3), "0": flyHome,
  ArrowLeft: () => nudge(0.12, 0), ArrowRight: () => nudge(-0.12, 0), ArrowUp: () => nudge(0, 0.12),
  ArrowDown: () => nudge(0, -0.12), Escape: () => choose(-1), Enter: () => seen.chosen >= 0 && goTo(seen.chosen),
};
canvas.addEventListener("keydown", (event) => {
  if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  land();
  keys[event.key]();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === at("search")) return;
  event.preventDefault();
  at("search").focus();
});
at("closer").addEventListener("click", () => zoomMiddle(1.5));
at("further").addEventListener("click", () => zoomMiddle(1 / 1.5));
at("reset").addEventListener("click", flyHome);
at("lines").hidden = child.length === 0;
at("hierarchy").addEventListener("change", (event) => {
  seen.lines = event.target.checked;
  redraw();
});
at("search").addEventListener("input", search);
at("search").addEventListener("keydown", searchKey);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readLook();
  redraw();
  drawChart();
});
new ResizeObserver(resize).observe(at("map"));

readLook();
drawLegend();
resize();
