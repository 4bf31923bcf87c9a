// The figures of an evaluation as tables, and its diagrams.

import { el } from "./dom.js";
import { count, figure } from "./format.js";
import { drawing } from "./svg.js";

const MEANINGS = {
  P: "precision: of the first k suggestions, so many are right",
  nDCG: "gain: right labels, those higher up count more",
  PSP: "precision that counts rare labels more",
  PSnDCG: "gain that counts rare labels more",
  R: "recall: of the right labels, so many are among the first k",
  RP: "precision, of at most as many labels as are right",
  coverage: "labels that are ever suggested",
  ECE: "how far probabilities are from how often labels are right",
};
const GROUPS = { head: "over 100 documents", torso: "26 to 100", tail: "25 or fewer" };
const COLUMNS = { n_labels: "labels", n_occurrences: "occurrences", recall: "recall, %" };
const DIAGRAMS = [
  ["reliability", "Are the probabilities right?", "Points on the dashed line are exactly right; below it the model is too sure. Vertical lines are 95 % intervals."],
  ["precision_coverage", "How much can be kept?", "Keep only labels above a threshold: the higher it is, the fewer are kept (to the left) and the more of them are right."],
];

/** @param {{data: string, figures: Object, svg: Object}} answer */
export function figuresPart({ data, figures, svg }) {
  const n = figures.n ? ` on ${count(figures.n)} documents` : "";
  return [
    el("p", { class: "soft", text: `Measured${n} of ${data}, in percent.` }),
    metricsTable(figures),
    el("div", { class: "diagrams" }, ...DIAGRAMS.map((one) => diagram(svg, ...one)).filter(Boolean)),
    ...(figures.by_frequency ? [el("h3", { text: "By how often labels occur in training" }), frequencyTable(figures.by_frequency)] : []),
  ];
}

function table(testid, head, rows) {
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": head[0] },
    el("table", { "data-testid": testid },
      el("thead", {}, el("tr", {}, ...head.map((text, at) => el("th", { scope: "col", class: at && "number", text })))),
      el("tbody", {}, ...rows.map(([first, ...cells]) => el("tr", {}, el("th", { scope: "row" }, first), ...cells.map((text) => el("td", { class: "number", text })))))),
  );
}

function metricsTable(figures) {
  const keys = Object.keys(figures).filter((key) => /^[A-Za-z]+@\d+$/.test(key));
  const ks = [...new Set(keys.map((key) => key.split("@")[1]))].sort((a, b) => a - b);
  const names = [...new Set(keys.map((key) => key.split("@")[0]))];
  const cell = (metric, k) => {
    const value = figures[`${metric}@${k}`];
    const [low, high] = figures.ci?.[`${metric}@${k}`] ?? [];
    return value === undefined ? "" : low === undefined ? figure(value) : `${figure(value)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
  };
  const rowOf = (metric) => [el("span", {}, el("b", { text: metric }), el("small", { class: "meaning", text: MEANINGS[metric] ?? "" })), ...ks.map((k) => cell(metric, k))];
  return table("figures", ["Metric", ...ks.map((k) => `@${k}`)], names.map(rowOf));
}

function frequencyTable(groups) {
  const listed = Object.keys(COLUMNS).filter((column) => Object.values(groups).some((group) => column in group));
  const cell = (value) => (value === undefined ? "" : Number.isInteger(value) ? count(value) : figure(value));
  const rows = Object.entries(groups).map(([group, values]) => [`${group}${GROUPS[group] ? `: ${GROUPS[group]}` : ""}`, ...listed.map((column) => cell(values[column]))]);
  return table("by-frequency", ["Labels with", ...listed.map((column) => COLUMNS[column])], rows);
}

function diagram(svg, key, title, said) {
  const node = svg?.[key] ? drawing(svg[key]) : null;
  return node && el("figure", { class: "diagram", "data-testid": key }, el("figcaption", {}, el("h3", { text: title }), el("p", { class: "hint", text: said })), node);
}
