// Draws the current view: lines and dots as pixels on one canvas, names and marks on another above it.

// Pixels of lines drawn while the map moves: adapted to the speed of the machine.
const MAX_LINE_PIXELS = 150000, MIN_LINE_PIXELS = 10000;

// Position of each label in the current view: on the disk, in CSS pixels, and its radius.
const wx = new Float64Array(n), wy = new Float64Array(n), sx = new Float32Array(n), sy = new Float32Array(n);
const size = new Float32Array(n), widths = new Float32Array(n), isHit = new Uint8Array(n);
const view = { motion: Disk.identity, zoom: HOME_ZOOM, width: 1, height: 1, ratio: 1, cx: 0, cy: 0, scale: 1 };
const state = { hover: -1, selected: -1, hits: [], active: 0, lines: child.length > 0 };
const canvas = byId("names"), names = canvas.getContext("2d"), dots = byId("dots").getContext("2d", { alpha: false });
let pixels = null, cells = null, pending = false, moving = false, linePixels = MAX_LINE_PIXELS;

function resize() {
  const box = byId("map").getBoundingClientRect();
  view.ratio = Math.min(window.devicePixelRatio || 1, 2);
  view.width = Math.max(box.width, 40);
  view.height = Math.max(box.height, 40);
  for (const layer of [byId("dots"), canvas]) {
    layer.width = Math.round(view.width * view.ratio);
    layer.height = Math.round(view.height * view.ratio);
  }
  pixels = new Pixels(dots, canvas.width, canvas.height);
  cells = new Uint8Array(Math.ceil(view.width / CELL) * Math.ceil(view.height / CELL));
  redraw();
  drawChart();
}

function project() {
  view.cx = view.width / 2;
  view.cy = view.height / 2;
  view.scale = (Math.min(view.width, view.height) / 2 - 8) * view.zoom;
  const [a, b, c, d] = view.motion, { cx, cy, scale } = view;
  const sizeFactor = scale / view.zoom > 250 ? 1 : 0.7, minSize = 1.5 + 12 / Math.sqrt(n + 40);
  const dotScale = sizeFactor * Math.sqrt(view.zoom) * Math.min(1.2, 0.75 + 8 / Math.sqrt(n + 1));
  for (let i = 0; i < n; i++) {
    const u = a * x[i] - b * y[i] + c, v = a * y[i] + b * x[i] + d;
    const s = c * x[i] + d * y[i] + a, t = c * y[i] - d * x[i] - b, m = s * s + t * t;
    wx[i] = (u * s + v * t) / m;
    wy[i] = (v * s - u * t) / m;
    sx[i] = cx + wx[i] * scale;
    sy[i] = cy + wy[i] * scale;
    // 1 - |w|² is gap / m: dots shrink towards the boundary, down to a minimum size.
    size[i] = Math.max(0.7, dotScale * (minSize + 7 * share[i] ** 2.2) * (0.3 + 0.7 * Math.min(1, (1.3 * gap[i]) / m)));
  }
}

function paintLines() {
  const { cx, cy, scale, ratio } = view, faded = state.hits.length ? 0.35 : 1;
  const weight = Math.round(256 * Math.min(0.5, Math.max(0.1, 14 / Math.sqrt(child.length))) * faded);
  let remaining = moving ? linePixels : Infinity;
  for (let k = 0; k < lines.length && remaining > 0; k++) {
    const i = child[lines[k]], j = parent[lines[k]];
    remaining -= pixels.geodesic(wx[i], wy[i], wx[j], wy[j], cx * ratio, cy * ratio, scale * ratio, theme.edge, weight);
  }
}

function paintDots() {
  const { ratio, width, height } = view, searching = state.hits.length > 0;
  for (let k = n - 1; k >= 0; k--) {
    const i = order[k], r = size[i];
    if (isHit[i] || sx[i] < -r || sy[i] < -r || sx[i] > width + r || sy[i] > height + r) continue;
    if (r > 2.2 && !searching) pixels.dot(sx[i] * ratio, sy[i] * ratio, (r + 0.8) * ratio, theme.ground, 200);
    pixels.dot(sx[i] * ratio, sy[i] * ratio, r * ratio, theme.dot[shadeOf(i)], searching ? 50 : 235);
  }
  const manyHits = state.hits.length > 200;
  for (let k = state.hits.length - 1; k >= 0; k--) {
    const i = state.hits[k];
    const border = manyHits && size[i] <= 1.5 ? 1 : 2.2;
    pixels.dot(sx[i] * ratio, sy[i] * ratio, (size[i] + border) * ratio, theme.accent, 256);
    if (size[i] > 1.5) pixels.dot(sx[i] * ratio, sy[i] * ratio, size[i] * ratio, theme.dot[shadeOf(i)], 256);
  }
}

function ring(i, radius, color) {
  names.beginPath();
  names.arc(sx[i], sy[i], size[i] + radius, 0, 7);
  names.strokeStyle = color;
  names.lineWidth = 2;
  names.stroke();
}

const circle = new Float64Array(3);

function link(i, j, color) {
  const { cx, cy, scale } = view;
  names.beginPath();
  names.moveTo(sx[i], sy[i]);
  if (Disk.circle(wx[i], wy[i], wx[j], wy[j], circle) && circle[2] < 50) {
    const [gx, gy, radius] = circle, counterclockwise = wx[i] * wy[j] > wy[i] * wx[j];
    const from = Math.atan2(wy[i] - gy, wx[i] - gx), to = Math.atan2(wy[j] - gy, wx[j] - gx);
    names.arc(cx + gx * scale, cy + gy * scale, radius * scale, from, to, counterclockwise);
  } else {
    names.lineTo(sx[j], sy[j]);
  }
  names.strokeStyle = color;
  names.lineWidth = 1.3;
  names.globalAlpha = 0.75;
  names.stroke();
  names.globalAlpha = 1;
}

function paint() {
  pending = false;
  const start = performance.now();
  project();
  const { ratio, cx, cy, scale, width, height } = view;
  pixels.clear(theme.page, theme.ground, cx * ratio, cy * ratio, scale * ratio);
  if (state.lines) paintLines();
  paintDots();
  pixels.show();
  names.setTransform(ratio, 0, 0, ratio, 0, 0);
  names.clearRect(0, 0, width, height);
  names.beginPath();
  names.arc(cx, cy, scale + 1.5, 0, 7);
  names.strokeStyle = theme.css.line;
  names.lineWidth = 2;
  names.stroke();
  if (state.selected >= 0) {
    if (state.lines) {
      for (const j of childrenOf(state.selected)) link(state.selected, j, theme.css.child);
      for (const j of parentsOf(state.selected)) link(state.selected, j, theme.css.parent);
    }
    ring(state.selected, 4, theme.css.accent);
  }
  if (state.hover >= 0) ring(state.hover, 3, theme.css.ink);
  writeNames();
  const elapsed = performance.now() - start;
  if (moving && elapsed > 20) linePixels = Math.max(MIN_LINE_PIXELS, linePixels * 0.7);
  if (moving && elapsed < 12) linePixels = Math.min(MAX_LINE_PIXELS, linePixels * 1.2);
}

function redraw() {
  if (!pending) {
    pending = true;
    requestAnimationFrame(paint);
  }
}
