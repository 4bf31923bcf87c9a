// The labels of the page: points on the disk, counts, edges.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const n = data.names.length, hasCounts = data.counts !== null;
const counts = hasCounts ? Float64Array.from(data.counts) : new Float64Array(n);
const x = new Float64Array(n), y = new Float64Array(n), gap = new Float64Array(n), norm = new Float64Array(n);
for (let i = 0; i < n; i++) {
  norm[i] = Math.tanh(data.distance[i] / 2);
  gap[i] = 1 / Math.cosh(data.distance[i] / 2) ** 2;
  x[i] = norm[i] * Math.cos(data.angle[i]);
  y[i] = norm[i] * Math.sin(data.angle[i]);
}
const maxDistance = data.distance.reduce((max, value) => Math.max(max, value), 0);
const HOME_ZOOM = 1; // the whole disk
const maxCount = counts.reduce((max, value) => Math.max(max, value), 1);
const minCount = counts.reduce((min, value) => Math.min(min, Math.max(value, 1)), maxCount);
// A count on a logarithmic scale from 0 (minCount) to 1 (maxCount).
const span = Math.log(maxCount / minCount);
const shareOf = (count) => (span > 0 ? Math.log(Math.max(count, 1) / minCount) / span : 0.5);
const share = counts.map(shareOf);
// Drawing order: frequent labels first; where frequency is unknown, those near the center.
const order = Uint32Array.from({ length: n }, (_, i) => i);
order.sort((i, j) => counts[j] - counts[i] || norm[i] - norm[j]);
const child = Uint32Array.from(data.children), parent = Uint32Array.from(data.parents);
const lines = Uint32Array.from({ length: child.length }, (_, e) => e);
lines.sort((e, f) => counts[child[f]] - counts[child[e]]);
