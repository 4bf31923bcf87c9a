// Norm against frequency, a dot a label.

function drawChart() {
  at("frequency").hidden = !known;
  const chart = at("chart"), box = chart.getBoundingClientRect();
  if (!known || !look || !box.width) return;
  const ratio = view.ratio, paper = chart.getContext("2d"), width = box.width, height = box.height;
  chart.width = Math.round(width * ratio);
  chart.height = Math.round(height * ratio);
  paper.scale(ratio, ratio);
  paper.font = "12px system-ui, sans-serif";
  const least = norm.reduce((one, other) => Math.min(one, other), 1);
  const most = norm.reduce((one, other) => Math.max(one, other), 0);
  const room = Math.max((most - least) * 0.06, 0.005), low = Math.max(0, least - room), high = Math.min(1, most + room);
  const px = (count) => 60 + (width - 104) * shareOf(count);
  const py = (value) => 12 + ((height - 52) * (high - value)) / (high - low);
  paper.fillStyle = look.css.soft;
  paper.strokeStyle = look.css.line;
  paper.textAlign = "center";
  for (const count of ticks(0.06)) {
    paper.strokeRect(px(count), 12, 0, height - 52);
    paper.fillText(number(count), px(count), height - 24);
  }
  paper.fillText("training documents", width / 2, height - 6);
  paper.textAlign = "right";
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((one) => (high - low) / one <= 6) || 0.25;
  for (let k = Math.ceil(low / step); k * step <= high; k++) {
    paper.strokeRect(52, py(k * step), width - 88, 0);
    paper.fillText((k * step).toFixed(step < 0.01 ? 3 : 2), 46, py(k * step) + 4);
  }
  paper.globalAlpha = n > 2000 ? 0.5 : 0.85;
  for (let i = 0; i < n; i++) {
    paper.fillStyle = `rgb(${look.shades[shadeOf(i)]})`;
    paper.fillRect(px(counts[i]) - 1.5, py(norm[i]) - 1.5, 3, 3);
  }
  paper.globalAlpha = 1;
  if (seen.chosen < 0) return;
  paper.beginPath();
  paper.arc(px(counts[seen.chosen]), py(norm[seen.chosen]), 6, 0, 7);
  paper.strokeStyle = look.css.accent;
  paper.lineWidth = 2;
  paper.stroke();
}
