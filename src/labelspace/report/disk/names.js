// Writes the names of the largest labels where there is room: beside their dots, or at the end of a line.

const MAX_NAMES = 60, PIXELS_PER_NAME = 11000, MAX_NAME_LENGTH = 34;
const CELL = 4; // pixels; names and dots reserve cells, so that they do not overlap
const shortNames = new Array(n).fill(null);

function shortName(i) {
  if (shortNames[i] === null) {
    const characters = Array.from(data.names[i].slice(0, 4 * MAX_NAME_LENGTH));
    if (characters.length > MAX_NAME_LENGTH) characters.splice(MAX_NAME_LENGTH - 1, Infinity, "…");
    shortNames[i] = characters.join("");
  }
  return shortNames[i];
}

// What occupies a cell: nothing, small dots, or names, large dots and leaders, which nothing may cover.
const FREE = 0, SMALL = 1, TAKEN = 2;
// Where a name may stand: beside its dot, or farther away from the center or towards it, with a leader.
const BESIDE = [[0, -1], [0, 1], [1, 0], [-1, 0], [0.8, -0.8], [-0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]];
const LEADERS = [12, 24, 38, 54, 72], TURNS = [0, 0.45, -0.45, 0.9, -0.9]; // pixels; radians off the ray

// Calls visit(index of the cell) for the cells of a box on the canvas, until it returns false.
function eachCell(left, top, right, bottom, visit) {
  const columns = Math.ceil(view.width / CELL), rows = Math.ceil(view.height / CELL);
  const x0 = Math.max(0, Math.floor(left / CELL)), x1 = Math.min(columns - 1, Math.floor(right / CELL));
  const y0 = Math.max(0, Math.floor(top / CELL)), y1 = Math.min(rows - 1, Math.floor(bottom / CELL));
  for (let j = y0; j <= y1; j++) {
    for (let i = x0; i <= x1; i++) if (visit(j * columns + i) === false) return false;
  }
  return true;
}

const reserve = (box, as) => eachCell(...box, (cell) => { cells[cell] = Math.max(cells[cell], as); });
const isFree = (box, most) => eachCell(...box, (cell) => cells[cell] <= most);

// The points of a leader, a cell apart.
function leaderPoints(x0, y0, x1, y1) {
  const steps = Math.ceil(Math.hypot(x1 - x0, y1 - y0) / CELL);
  return Array.from({ length: steps }, (_, k) => [x0 + ((x1 - x0) * k) / steps, y0 + ((y1 - y0) * k) / steps]);
}

// The place of a name of this size in a direction from its dot, or null where something is in the way.
function placeAt(i, u, v, away, half, height, most) {
  const reach = size[i] + (away ? 2 : 3), ex = sx[i] + u * (reach + away), ey = sy[i] + v * (reach + away);
  const isSideways = Math.abs(u) > 0.35; // the line ends at the middle of a side of the name, else above or below it
  const cx = isSideways ? ex + Math.sign(u) * (half + 2) : ex, cy = isSideways ? ey : ey + (Math.sign(v) * height) / 2;
  const box = [cx - half - 3, cy - height / 2, cx + half + 3, cy + height / 2];
  if (box[0] < 0 || box[1] < 0 || box[2] > view.width || box[3] > view.height || !isFree(box, most)) return null;
  if (!away) return { cx, cy, box, leader: [] };
  const ends = [sx[i] + u * reach, sy[i] + v * reach, ex, ey];
  const leader = leaderPoints(...ends);
  const clear = leader.every(([px, py]) => Math.hypot(px - sx[i], py - sy[i]) < size[i] + 5 || isFree([px, py, px, py], SMALL));
  return clear ? { cx, cy, box, leader, ends } : null;
}

function findPlace(i, half, height) {
  for (const [u, v] of BESIDE) {
    const place = placeAt(i, u, v, 0, half, height, FREE);
    if (place) return place;
  }
  const dx = sx[i] - view.cx, dy = sy[i] - view.cy, angle = Math.atan2(dy, dx);
  for (const most of [FREE, SMALL]) {
    for (const away of LEADERS) {
      for (const turn of TURNS) {
        for (const ray of [angle + turn, angle + Math.PI + turn]) {
          const place = placeAt(i, Math.cos(ray), Math.sin(ray), away, half, height, most);
          if (place) return place;
        }
      }
    }
  }
  return null;
}

// The place of a name that is shown in any case: above its dot, on the canvas.
function forcedPlace(i, half, height) {
  const cx = Math.min(Math.max(sx[i], half + 2), view.width - half - 2);
  const above = sy[i] - size[i] - 3 - height / 2, cy = above > height / 2 ? above : sy[i] + size[i] + 3 + height / 2;
  return { cx, cy, box: [cx - half - 3, cy - height / 2, cx + half + 3, cy + height / 2], leader: [] };
}

function writeName(i, forced) {
  const fontSize = 11 + Math.round(4 * share[i] ** 2);
  names.font = `${share[i] > 0.7 || forced ? 600 : 400} ${fontSize}px system-ui, sans-serif`;
  if (forced || !widths[i]) widths[i] = names.measureText(shortName(i)).width + 1;
  const half = widths[i] / 2, height = fontSize + 3;
  const place = forced ? forcedPlace(i, half, height) : findPlace(i, half, height);
  if (!place) return false;
  reserve(place.box, TAKEN);
  for (const [px, py] of place.leader) reserve([px, py, px, py], TAKEN);
  if (place.leader.length) drawLeader(...place.ends);
  names.globalAlpha = forced ? 1 : Math.min(1, 0.7 + share[i] * 0.3);
  names.strokeText(shortName(i), place.cx, place.cy);
  names.fillText(shortName(i), place.cx, place.cy);
  return true;
}

function drawLeader(x0, y0, x1, y1) {
  names.save();
  names.beginPath();
  names.moveTo(x0, y0);
  names.lineTo(x1, y1);
  names.globalAlpha = 0.6;
  names.strokeStyle = theme.css.soft;
  names.lineWidth = 1;
  names.stroke();
  names.restore();
}

// Whether the name of a label can be read here: on the canvas and not near the boundary.
const isReadable = (i) =>
  wx[i] * wx[i] + wy[i] * wy[i] < 0.95 && sx[i] > 0 && sy[i] > 0 && sx[i] < view.width && sy[i] < view.height;

// As many names as there is room for: the larger the map, and the closer one looks, the more.
const maxNames = () => Math.min(MAX_NAMES, Math.round((view.width * view.height) / PIXELS_PER_NAME));

function writeNames() {
  names.textAlign = "center";
  names.textBaseline = "middle";
  names.lineJoin = "round";
  names.lineWidth = 3.5;
  names.strokeStyle = theme.css.ground;
  names.fillStyle = theme.css.ink;
  cells.fill(FREE);
  for (let k = 0; k < n; k++) {
    const i = order[k], r = size[i];
    reserve([sx[i] - r, sy[i] - r, sx[i] + r, sy[i] + r], r > 3 ? TAKEN : SMALL);
  }
  if (state.selected >= 0) writeName(state.selected, true);
  if (state.hover >= 0 && state.hover !== state.selected) writeName(state.hover, true);
  const candidates = state.hits.length ? state.hits : order, most = maxNames();
  let tried = 0, written = 0;
  for (let k = 0; k < candidates.length && written < most && tried < 2 * most; k++) {
    const i = candidates[k];
    if (i === state.hover || i === state.selected || !isReadable(i)) continue;
    tried++;
    if (writeName(i, false)) written++;
  }
  names.globalAlpha = 1;
}
