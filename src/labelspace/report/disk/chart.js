// Scatter plot of norm against frequency, one dot per label.

function drawChart() {
  byId("frequency").hidden = !hasCounts;
  const chart = byId("chart"), box = chart.getBoundingClientRect();
  if (!hasCounts || !theme || !box.width) return;
  const ratio = view.ratio, context = chart.getContext("2d"), width = box.width, height = box.height;
  chart.width = Math.round(width * ratio);
  chart.height = Math.round(height * ratio);
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  const minNorm = norm.reduce((min, value) => Math.min(min, value), 1);
  const maxNorm = norm.reduce((max, value) => Math.max(max, value), 0);
  const margin = Math.max((maxNorm - minNorm) * 0.06, 0.005);
  const low = Math.max(0, minNorm - margin), high = Math.min(1, maxNorm + margin);
  const px = (count) => 60 + (width - 104) * shareOf(count);
  const py = (value) => 12 + ((height - 52) * (high - value)) / (high - low);
  context.fillStyle = theme.css.soft;
  context.strokeStyle = theme.css.line;
  context.textAlign = "center";
  for (const count of ticks(0.06)) {
    context.strokeRect(px(count), 12, 0, height - 52);
    context.fillText(number(count), px(count), height - 24);
  }
  context.fillText("training documents", width / 2, height - 6);
  context.textAlign = "right";
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((size) => (high - low) / size <= 6) || 0.25;
  for (let k = Math.ceil(low / step); k * step <= high; k++) {
    context.strokeRect(52, py(k * step), width - 88, 0);
    context.fillText((k * step).toFixed(step < 0.01 ? 3 : 2), 46, py(k * step) + 4);
  }
  context.globalAlpha = n > 2000 ? 0.5 : 0.85;
  for (let i = 0; i < n; i++) {
    context.fillStyle = `rgb(${theme.shades[shadeOf(i)]})`;
    context.fillRect(px(counts[i]) - 1.5, py(norm[i]) - 1.5, 3, 3);
  }
  context.globalAlpha = 1;
  if (state.selected < 0) return;
  context.beginPath();
  context.arc(px(counts[state.selected]), py(norm[state.selected]), 6, 0, 7);
  context.strokeStyle = theme.css.accent;
  context.lineWidth = 2;
  context.stroke();
}
