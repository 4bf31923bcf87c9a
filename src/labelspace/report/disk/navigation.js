// Motions of the disk: drag, zoom and animated flights.

const MAX_ZOOM = 8, FLIGHT_MS = 550, SETTLE_MS = 140; // factor, milliseconds, milliseconds
let settleTimer = 0, flight = 0;

// While the map moves, some lines are left out; they are drawn once it stops.
function markMoving() {
  moving = true;
  clearTimeout(settleTimer);
  settleTimer = setTimeout(() => {
    moving = false;
    redraw();
  }, SETTLE_MS);
  redraw();
}

function toDisk(px, py, maxNorm) {
  const u = (px - view.width / 2) / view.scale, v = (py - view.height / 2) / view.scale, r = Math.hypot(u, v);
  return r > maxNorm ? [(u * maxNorm) / r, (v * maxNorm) / r] : [u, v];
}

function moveDisk(from, to) {
  const motion = Disk.compose(Disk.motionBetween(...from, ...to), view.motion);
  const [u, v] = Disk.apply(motion, 0, 0);
  if (Math.hypot(u, v) < Math.tanh((maxDistance + 3) / 2)) view.motion = motion;
  markMoving();
}

// The disk stays centered; a motion keeps the point under the pointer in place.
function zoomBy(factor, px, py) {
  stopFlight();
  const zoom = Math.min(MAX_ZOOM, Math.max(1, view.zoom * factor));
  const from = toDisk(px, py, 0.97);
  const to = from.map((part) => (part * view.zoom) / zoom);
  view.zoom = zoom;
  project();
  if (Math.hypot(...to) < 0.97) moveDisk(from, to);
  markMoving();
}

function stopFlight() {
  cancelAnimationFrame(flight);
  flight = 0;
}

// Animate a change of the view; setView(t) sets it, with t from 0 to 1.
function fly(setView) {
  stopFlight();
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let start = 0;
  const step = (now) => {
    start = start || now;
    const t = reducedMotion ? 1 : Math.min(1, (now - start) / FLIGHT_MS);
    setView(t * t * (3 - 2 * t));
    markMoving();
    flight = t < 1 ? requestAnimationFrame(step) : 0;
  };
  flight = requestAnimationFrame(step);
}

function flyTo(u, v) {
  const from = view.motion, r = Math.min(Math.hypot(u, v), 1 - 1e-12);
  fly((t) => {
    const step = r > 0 ? Math.tanh(t * Math.atanh(r)) / r : 0;
    view.motion = Disk.compose(Disk.translation(-u * step, -v * step), from);
  });
}

function flyHome() {
  const [u, v] = Disk.apply(view.motion, 0, 0), r = Math.hypot(u, v), zoom = view.zoom;
  const angle = 2 * Math.atan2(view.motion[1], view.motion[0]), turn = Math.atan2(Math.sin(angle), Math.cos(angle));
  fly((t) => {
    const step = r > 0 ? Math.tanh((1 - t) * Math.atanh(r)) / r : 0;
    view.motion = Disk.compose(Disk.translation(u * step, v * step), Disk.rotation(turn * (1 - t)));
    view.zoom = HOME_ZOOM * (zoom / HOME_ZOOM) ** (1 - t);
  });
}

function goTo(i) {
  select(i);
  project();
  flyTo(wx[i], wy[i]);
}
