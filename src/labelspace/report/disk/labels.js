// The labels as the page brings them: places on the disk, counts, edges.

const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const n = data.names.length, known = data.counts !== null;
const counts = known ? Float64Array.from(data.counts) : new Float64Array(n);
const x = new Float64Array(n), y = new Float64Array(n), gap = new Float64Array(n), norm = new Float64Array(n);
for (let i = 0; i < n; i++) {
  norm[i] = Math.tanh(data.distance[i] / 2);
  gap[i] = 1 / Math.cosh(data.distance[i] / 2) ** 2;
  x[i] = norm[i] * Math.cos(data.angle[i]);
  y[i] = norm[i] * Math.sin(data.angle[i]);
}
const furthest = data.distance.reduce((most, one) => Math.max(most, one), 0);
// The view begins where the labels fill it: all of the disk, or its middle where they keep to that.
const HOME_ZOOM = Math.min(3, Math.max(1, 0.9 / Math.max(Math.tanh(furthest / 2), 1e-9)));
const highest = counts.reduce((most, one) => Math.max(most, one), 1);
const lowest = counts.reduce((least, one) => Math.min(least, Math.max(one, 1)), highest);
// Where a count stands between the lowest and the highest, on a logarithmic scale from 0 to 1.
const span = Math.log(highest / lowest);
const shareOf = (count) => (span > 0 ? Math.log(Math.max(count, 1) / lowest) / span : 0.5);
const share = counts.map(shareOf);
// Frequent labels come first where there is no room for all; where frequency is unknown, those near the center.
const order = Uint32Array.from({ length: n }, (_, i) => i);
order.sort((i, j) => counts[j] - counts[i] || norm[i] - norm[j]);
const child = Uint32Array.from(data.children), parent = Uint32Array.from(data.parents);
const lines = Uint32Array.from({ length: child.length }, (_, e) => e);
lines.sort((e, f) => counts[child[f]] - counts[child[e]]);
