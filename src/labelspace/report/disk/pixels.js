// Draws dots and lines directly into pixels, which is fast without a graphics card too.
class Pixels {
  constructor(context, width, height) {
    this.context = context;
    this.width = width;
    this.height = height;
    this.image = context.createImageData(width, height);
    this.data = new Int32Array(this.image.data.buffer);
    this.circle = new Float64Array(3);
  }

  // Colors are [red, green, blue]; a pixel has red in its minCount byte.
  static packed([r, g, b]) {
    return 0xff000000 | (b << 16) | (g << 8) | r;
  }

  show() {
    this.context.putImageData(this.image, 0, 0);
  }

  clear(page, ground, x, y, radius) {
    const { data, width, height } = this;
    data.fill(page);
    for (let j = 0; j < height; j++) {
      const dy = j + 0.5 - y, half = Math.sqrt(Math.max(radius * radius - dy * dy, 0));
      const from = Math.max(0, Math.round(x - half)), to = Math.min(width, Math.round(x + half));
      if (to > from) data.fill(ground, j * width + from, j * width + to);
    }
  }

  // Blend a color into one pixel, weight from 0 to 256; red and blue are blended at once, as their bits do not touch.
  blend(index, color, weight) {
    const old = this.data[index], rest = 256 - weight;
    const redBlue = (Math.imul(old & 0xff00ff, rest) + Math.imul(color & 0xff00ff, weight)) >>> 8;
    const green = (Math.imul(old & 0xff00, rest) + Math.imul(color & 0xff00, weight)) >>> 8;
    this.data[index] = 0xff000000 | (redBlue & 0xff00ff) | (green & 0xff00);
  }

  dot(x, y, radius, color, weight) {
    const { width, height } = this, outer = radius + 0.5, inner = Math.max(radius - 0.5, 0);
    const x0 = Math.max(0, Math.floor(x - outer)), x1 = Math.min(width - 1, Math.floor(x + outer));
    const y0 = Math.max(0, Math.floor(y - outer)), y1 = Math.min(height - 1, Math.floor(y + outer));
    for (let j = y0; j <= y1; j++) {
      const dy = j + 0.5 - y;
      for (let i = x0; i <= x1; i++) {
        const dx = i + 0.5 - x, square = dx * dx + dy * dy;
        if (square >= outer * outer) continue;
        const cover = square <= inner * inner ? 1 : outer - Math.sqrt(square);
        this.blend(j * width + i, color, (cover * weight) | 0);
      }
    }
  }

  // A line one pixel wide, without its last pixel. Fixed-point numbers of 1/65536 pixel, to stay integer.
  line(x0, y0, x1, y1, color, weight) {
    const { width, height } = this;
    const dx = x1 - x0, dy = y1 - y0, steep = Math.abs(dy) > Math.abs(dx);
    const n = Math.ceil(Math.max(Math.abs(dx), Math.abs(dy)));
    if (Math.max(x0, x1) < 0 || Math.max(y0, y1) < 0 || Math.min(x0, x1) > width || Math.min(y0, y1) > height) return;
    if (Math.max(Math.abs(x0), Math.abs(y0), Math.abs(x1), Math.abs(y1)) > 32000) return;
    const length = steep ? height : width, breadth = (steep ? width : height) - 1;
    const stride = steep ? width : 1, across = steep ? 1 : width;
    let along = ((steep ? y0 : x0) * 65536) | 0, off = (((steep ? x0 : y0) - 0.5) * 65536) | 0;
    const alongStep = (((steep ? dy : dx) / n) * 65536) | 0, offStep = (((steep ? dx : dy) / n) * 65536) | 0;
    for (let k = 0; k < n; k++, along += alongStep, off += offStep) {
      const low = off >> 16, position = along >> 16;
      if (low < 0 || low >= breadth || position < 0 || position >= length) continue;
      const index = position * stride + low * across, upper = ((off & 65535) * weight) >> 16;
      this.blend(index, color, weight - upper);
      this.blend(index + across, color, upper);
    }
  }

  // The geodesic between two points of the disk, given its center and radius in pixels; returns the chord length.
  geodesic(x, y, u, v, cx, cy, scale, color, weight) {
    const chord = Math.sqrt((u - x) * (u - x) + (v - y) * (v - y)), circle = this.circle;
    let steps = 1, turn = 0;
    if (chord * scale > 6 && Disk.circle(x, y, u, v, circle)) {
      turn = 2 * Math.asin(Math.min(1, chord / (2 * circle[2]))) * (x * v > y * u ? -1 : 1);
      steps = Math.min(32, Math.ceil(Math.abs(turn) * Math.sqrt((circle[2] * scale) / 2)));
    }
    if (steps < 2) {
      this.line(cx + x * scale, cy + y * scale, cx + u * scale, cy + v * scale, color, weight);
      return chord * scale;
    }
    const cos = Math.cos(turn / steps), sin = Math.sin(turn / steps);
    const gx = circle[0], gy = circle[1];
    let rx = x - gx, ry = y - gy, px = cx + x * scale, py = cy + y * scale;
    for (let k = 0; k < steps; k++) {
      const next = rx * cos - ry * sin;
      ry = rx * sin + ry * cos;
      rx = next;
      const qx = cx + (gx + rx) * scale, qy = cy + (gy + ry) * scale;
      this.line(px, py, qx, qy, color, weight);
      px = qx;
      py = qy;
    }
    return chord * scale;
  }
}
