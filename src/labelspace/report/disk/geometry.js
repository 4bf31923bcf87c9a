// Geometry of the Poincaré disk. A motion is [ar, ai, br, bi], two complex numbers a and b with |a|² - |b|² = 1:
// it maps z to (a z + b) / (conj(b) z + conj(a)), and preserves hyperbolic distances.
const Disk = {
  identity: [1, 0, 0, 0],

  // The motion that maps the center to (x, y) along a straight line.
  translation(x, y) {
    const s = 1 / Math.sqrt(Math.max(1 - x * x - y * y, 1e-14));
    return [s, 0, x * s, y * s];
  },

  rotation(angle) {
    return [Math.cos(angle / 2), Math.sin(angle / 2), 0, 0];
  },

  // The motion q followed by p.
  compose(p, q) {
    const [a, b, c, d] = p, [e, f, g, h] = q;
    const m = [
      a * e - b * f + c * g + d * h, a * f + b * e + d * g - c * h,
      a * g - b * h + c * e + d * f, a * h + b * g + d * e - c * f,
    ];
    const s = 1 / Math.sqrt(m[0] * m[0] + m[1] * m[1] - m[2] * m[2] - m[3] * m[3]);
    return m.map((part) => part * s);
  },

  apply(p, x, y) {
    const [a, b, c, d] = p;
    const u = a * x - b * y + c, v = a * y + b * x + d;
    const s = c * x + d * y + a, t = c * y - d * x - b;
    const n = s * s + t * t;
    return [(u * s + v * t) / n, (v * s - u * t) / n];
  },

  // The motion along the geodesic through two points that maps the first to the second.
  motionBetween(x, y, u, v) {
    const toCenter = Disk.translation(-x, -y);
    const step = Disk.translation(...Disk.apply(toCenter, u, v));
    return Disk.compose(Disk.translation(x, y), Disk.compose(step, toCenter));
  },

  // The gap of a point is 1 - |z|², more precise than z itself near the boundary.
  distance(x, y, gap, u, v, gapOther) {
    return Math.acosh(1 + 2 * ((x - u) ** 2 + (y - v) ** 2) / (gap * gapOther));
  },

  // Writes x, y and radius of the circle of the geodesic between two points to out; false for a straight line.
  circle(x, y, u, v, out) {
    const cross = x * v - y * u;
    if (Math.abs(cross) < 1e-6) return false;
    const p = (1 + x * x + y * y) / 2, q = (1 + u * u + v * v) / 2;
    const cx = (p * v - q * y) / cross, cy = (x * q - u * p) / cross;
    out[0] = cx;
    out[1] = cy;
    out[2] = Math.sqrt(Math.max(cx * cx + cy * cy - 1, 0));
    return true;
  },
};
