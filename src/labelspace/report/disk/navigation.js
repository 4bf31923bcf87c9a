// Motions of the disk: dragged, zoomed, flown.

const ZOOM_MOST = 8, FLIGHT = 550, REST = 140; // times, milliseconds
let stopping = 0, flight = 0;

// While the map moves, some lines are left out; they come back once it rests.
function moved() {
  moving = true;
  clearTimeout(stopping);
  stopping = setTimeout(() => {
    moving = false;
    redraw();
  }, REST);
  redraw();
}

function toDisk(px, py, most) {
  const u = (px - view.width / 2) / view.scale, v = (py - view.height / 2) / view.scale, r = Math.hypot(u, v);
  return r > most ? [(u * most) / r, (v * most) / r] : [u, v];
}

function carry(from, to) {
  const motion = Disk.after(Disk.carry(...from, ...to), view.motion);
  const [u, v] = Disk.moved(motion, 0, 0);
  if (Math.hypot(u, v) < Math.tanh((furthest + 3) / 2)) view.motion = motion;
  moved();
}

// The disk stays in the middle; the point under the pointer stays there by moving with it.
function zoomBy(factor, px, py) {
  land();
  const zoom = Math.min(ZOOM_MOST, Math.max(1, view.zoom * factor));
  const from = toDisk(px, py, 0.97);
  const to = from.map((part) => (part * view.zoom) / zoom);
  view.zoom = zoom;
  project();
  if (Math.hypot(...to) < 0.97) carry(from, to);
  moved();
}

function land() {
  cancelAnimationFrame(flight);
  flight = 0;
}

// Go from the present view to another in a short time; place(part) sets the view, part from 0 to 1.
function fly(place) {
  land();
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let start = 0;
  const step = (now) => {
    start = start || now;
    const part = calm ? 1 : Math.min(1, (now - start) / FLIGHT);
    place(part * part * (3 - 2 * part));
    moved();
    flight = part < 1 ? requestAnimationFrame(step) : 0;
  };
  flight = requestAnimationFrame(step);
}

function flyTo(u, v) {
  const from = view.motion, r = Math.min(Math.hypot(u, v), 1 - 1e-12);
  fly((part) => {
    const far = r > 0 ? Math.tanh(part * Math.atanh(r)) / r : 0;
    view.motion = Disk.after(Disk.translation(-u * far, -v * far), from);
  });
}

function flyHome() {
  const [u, v] = Disk.moved(view.motion, 0, 0), r = Math.hypot(u, v), zoom = view.zoom;
  const angle = 2 * Math.atan2(view.motion[1], view.motion[0]), turn = Math.atan2(Math.sin(angle), Math.cos(angle));
  fly((part) => {
    const far = r > 0 ? Math.tanh((1 - part) * Math.atanh(r)) / r : 0;
    view.motion = Disk.after(Disk.translation(u * far, v * far), Disk.rotation(turn * (1 - part)));
    view.zoom = HOME_ZOOM * (zoom / HOME_ZOOM) ** (1 - part);
  });
}

function goTo(i) {
  choose(i);
  project();
  flyTo(wx[i], wy[i]);
}
