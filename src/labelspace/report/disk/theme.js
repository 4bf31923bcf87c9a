// Colors of the light or dark color scheme, and the legend.

// From rare to frequent, in even steps of lightness.
const RAMPS = {
  light: ["#a8c8e6", "#79b0d6", "#4a92c3", "#3873b1", "#42539f", "#4d338c", "#541672", "#4a0a4e"],
  dark: ["#3f4f86", "#3b6a96", "#33849a", "#2a9d92", "#4bb57e", "#86ca62", "#c8d94a", "#fdea5a"],
};
const SHADES = 64;
let theme = null;

const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const ramp = RAMPS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"].map(rgb);
  const css = {};
  for (const name of ["ink", "soft", "line", "page", "ground", "edge", "accent", "parent", "child"]) {
    css[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const shades = Array.from({ length: SHADES }, (_, k) => {
    const position = (k / (SHADES - 1)) * (ramp.length - 1), low = Math.min(Math.floor(position), ramp.length - 2);
    return ramp[low].map((part, c) => Math.round(part + (ramp[low + 1][c] - part) * (position - low)));
  });
  theme = { css, shades, dot: Int32Array.from(shades, Pixels.packed) };
  for (const name of ["page", "ground", "edge", "accent"]) theme[name] = Pixels.packed(rgb(css[name]));
  byId("scale").style.background = `linear-gradient(to right, ${shades.map((shade) => `rgb(${shade})`)})`;
}

const shadeOf = (i) => Math.round(share[i] * (SHADES - 1));

// The lowest and the highest count, and powers of ten between them, at least this share of the scale from both.
function ticks(margin) {
  const powers = Array.from({ length: 16 }, (_, power) => 10 ** power);
  const between = powers.filter((count) => Math.abs(shareOf(count) - 0.5) < 0.5 - margin);
  return [...new Set(maxCount > minCount ? [minCount, ...between, maxCount] : [maxCount])];
}

function drawLegend() {
  byId("legend").hidden = maxCount === minCount;
  byId("ticks").replaceChildren(...ticks(0.19).map((count) => {
    const tick = element("span", count.toLocaleString("en", { notation: "compact" }), count === maxCount ? "end" : "");
    tick.style.left = `${100 * shareOf(count)}%`;
    return tick;
  }));
}
