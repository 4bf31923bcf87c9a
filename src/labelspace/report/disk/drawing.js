// The present view, drawn: lines and dots as pixels on one canvas, names and marks on another above it.

const NAMES_DRAWN = 45, NAMES_TRIED = 300, NAME_LENGTH = 34;
const CELL = 4; // pixels; names and large dots take cells, so that none covers another
// Pixels of lines drawn while the map moves: more where the machine is quick.
const LINES_MOST = 150000, LINES_LEAST = 10000;

// Where each label stands in the present view: on the disk, in CSS pixels, and its radius.
const wx = new Float64Array(n), wy = new Float64Array(n), sx = new Float32Array(n), sy = new Float32Array(n);
const size = new Float32Array(n), widths = new Float32Array(n), isHit = new Uint8Array(n);
const view = { motion: Disk.still, zoom: HOME_ZOOM, width: 1, height: 1, ratio: 1, cx: 0, cy: 0, scale: 1 };
const seen = { hover: -1, chosen: -1, hits: [], active: 0, lines: child.length > 0 };
const canvas = at("names"), names = canvas.getContext("2d"), dots = at("dots").getContext("2d", { alpha: false });
let pixels = null, cells = null, pending = false, moving = false, budget = LINES_MOST;

function resize() {
  const box = at("map").getBoundingClientRect();
  view.ratio = Math.min(window.devicePixelRatio || 1, 2);
  view.width = Math.max(box.width, 40);
  view.height = Math.max(box.height, 40);
  for (const one of [at("dots"), canvas]) {
    one.width = Math.round(view.width * view.ratio);
    one.height = Math.round(view.height * view.ratio);
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
  const roomy = scale / view.zoom > 250 ? 1 : 0.7, least = 1.5 + 12 / Math.sqrt(n + 40);
  const grown = roomy * Math.sqrt(view.zoom) * Math.min(1.2, 0.75 + 8 / Math.sqrt(n + 1));
  for (let i = 0; i < n; i++) {
    const u = a * x[i] - b * y[i] + c, v = a * y[i] + b * x[i] + d;
    const s = c * x[i] + d * y[i] + a, t = c * y[i] - d * x[i] - b, m = s * s + t * t;
    wx[i] = (u * s + v * t) / m;
    wy[i] = (v * s - u * t) / m;
    sx[i] = cx + wx[i] * scale;
    sy[i] = cy + wy[i] * scale;
    // 1 - |w|² is the gap over m: dots shrink towards the rim as everything does, though not to nothing.
    size[i] = Math.max(0.7, grown * (least + 7 * share[i] ** 2.2) * (0.3 + 0.7 * Math.min(1, (1.3 * gap[i]) / m)));
  }
}

function paintLines() {
  const { cx, cy, scale, ratio } = view, faded = seen.hits.length ? 0.35 : 1;
  const weight = Math.round(256 * Math.min(0.5, Math.max(0.1, 14 / Math.sqrt(child.length))) * faded);
  let left = moving ? budget : Infinity;
  for (let k = 0; k < lines.length && left > 0; k++) {
    const i = child[lines[k]], j = parent[lines[k]];
    left -= pixels.geodesic(wx[i], wy[i], wx[j], wy[j], cx * ratio, cy * ratio, scale * ratio, look.edge, weight);
  }
}

function paintDots() {
  const { ratio, width, height } = view, searching = seen.hits.length > 0;
  for (let k = n - 1; k >= 0; k--) {
    const i = order[k], r = size[i];
    if (isHit[i] || sx[i] < -r || sy[i] < -r || sx[i] > width + r || sy[i] > height + r) continue;
    if (r > 2.2 && !searching) pixels.dot(sx[i] * ratio, sy[i] * ratio, (r + 0.8) * ratio, look.ground, 200);
    pixels.dot(sx[i] * ratio, sy[i] * ratio, r * ratio, look.dot[shadeOf(i)], searching ? 50 : 235);
  }
  const narrow = seen.hits.length > 200;
  for (let k = seen.hits.length - 1; k >= 0; k--) {
    const i = seen.hits[k];
    const rim = narrow && size[i] <= 1.5 ? 1 : 2.2;
    pixels.dot(sx[i] * ratio, sy[i] * ratio, (size[i] + rim) * ratio, look.accent, 256);
    if (size[i] > 1.5) pixels.dot(sx[i] * ratio, sy[i] * ratio, size[i] * ratio, look.dot[shadeOf(i)], 256);
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
    const [gx, gy, radius] = circle, turned = wx[i] * wy[j] > wy[i] * wx[j];
    const from = Math.atan2(wy[i] - gy, wx[i] - gx), to = Math.atan2(wy[j] - gy, wx[j] - gx);
    names.arc(cx + gx * scale, cy + gy * scale, radius * scale, from, to, turned);
  } else {
    names.lineTo(sx[j], sy[j]);
  }
  names.strokeStyle = color;
  names.lineWidth = 1.3;
  names.globalAlpha = 0.75;
  names.stroke();
  names.globalAlpha = 1;
}

const shortNames = new Array(n).fill(null);

function shortName(i) {
  if (shortNames[i] === null) {
    const letters = Array.from(data.names[i].slice(0, 4 * NAME_LENGTH));
    if (letters.length > NAME_LENGTH) letters.splice(NAME_LENGTH - 1, Infinity, "…");
    shortNames[i] = letters.join("");
  }
  return shortNames[i];
}

// Take the cells that a box covers; false, and none taken, where one is taken already and the box is not forced.
function takeRoom(left, top, right, bottom, forced) {
  const across = Math.ceil(view.width / CELL), down = Math.ceil(view.height / CELL);
  const x0 = Math.max(0, Math.floor(left / CELL)), x1 = Math.min(across - 1, Math.floor(right / CELL));
  const y0 = Math.max(0, Math.floor(top / CELL)), y1 = Math.min(down - 1, Math.floor(bottom / CELL));
  for (let j = y0; j <= y1 && !forced; j++) {
    for (let i = x0; i <= x1; i++) if (cells[j * across + i]) return false;
  }
  for (let j = y0; j <= y1; j++) cells.fill(1, j * across + x0, j * across + x1 + 1);
  return true;
}

function writeName(i, forced) {
  const letters = 11 + Math.round(4 * share[i] ** 2);
  names.font = `${share[i] > 0.7 || forced ? 600 : 400} ${letters}px system-ui, sans-serif`;
  if (forced || !widths[i]) widths[i] = names.measureText(shortName(i)).width + 1;
  const half = widths[i] / 2, px = Math.min(Math.max(sx[i], half + 2), view.width - half - 2);
  let base = sy[i] - size[i] - 5; // above the dot, or else below it
  if (!takeRoom(px - half - 4, base - letters, px + half + 4, base + 1, forced)) {
    base = sy[i] + size[i] + letters + 4;
    if (!takeRoom(px - half - 4, base - letters, px + half + 4, base + 1, false)) return false;
  }
  names.globalAlpha = forced ? 1 : Math.min(1, 0.5 + share[i] * 0.5);
  names.strokeText(shortName(i), px, base);
  names.fillText(shortName(i), px, base);
  return true;
}

// Whether a label stands where its name can be read: on the canvas and not at the rim.
const inSight = (i) =>
  wx[i] * wx[i] + wy[i] * wy[i] < 0.9 && sx[i] > 0 && sy[i] > 0 && sx[i] < view.width && sy[i] < view.height;

function writeNames() {
  names.textAlign = "center";
  names.lineJoin = "round";
  names.lineWidth = 3.5;
  names.strokeStyle = look.css.ground;
  names.fillStyle = look.css.ink;
  cells.fill(0);
  for (let k = 0; k < n && k < NAMES_TRIED; k++) {
    const i = order[k], r = size[i];
    if (r > 3 && inSight(i)) takeRoom(sx[i] - r, sy[i] - r, sx[i] + r, sy[i] + r, true);
  }
  if (seen.chosen >= 0) writeName(seen.chosen, true);
  if (seen.hover >= 0 && seen.hover !== seen.chosen) writeName(seen.hover, true);
  const listed = seen.hits.length ? seen.hits : order;
  for (let k = 0, tried = 0, written = 0; k < listed.length && written < NAMES_DRAWN && tried < NAMES_TRIED; k++) {
    const i = listed[k];
    if (i === seen.hover || i === seen.chosen || !inSight(i)) continue;
    tried++;
    if (writeName(i, false)) written++;
  }
  names.globalAlpha = 1;
}

function paint() {
  pending = false;
  const began = performance.now();
  project();
  const { ratio, cx, cy, scale, width, height } = view;
  pixels.clear(look.page, look.ground, cx * ratio, cy * ratio, scale * ratio);
  if (seen.lines) paintLines();
  paintDots();
  pixels.show();
  names.setTransform(ratio, 0, 0, ratio, 0, 0);
  names.clearRect(0, 0, width, height);
  names.beginPath();
  names.arc(cx, cy, scale + 1.5, 0, 7);
  names.strokeStyle = look.css.line;
  names.lineWidth = 2;
  names.stroke();
  if (seen.chosen >= 0) {
    if (seen.lines) {
      for (const j of below(seen.chosen)) link(seen.chosen, j, look.css.child);
      for (const j of above(seen.chosen)) link(seen.chosen, j, look.css.parent);
    }
    ring(seen.chosen, 4, look.css.accent);
  }
  if (seen.hover >= 0) ring(seen.hover, 3, look.css.ink);
  writeNames();
  const took = performance.now() - began;
  if (moving && took > 20) budget = Math.max(LINES_LEAST, budget * 0.7);
  if (moving && took < 12) budget = Math.min(LINES_MOST, budget * 1.2);
}

function redraw() {
  if (!pending) {
    pending = true;
    requestAnimationFrame(paint);
  }
}
