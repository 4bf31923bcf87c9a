// The figures of an evaluation as tables, and its diagrams.

import { el } from "./dom.js";
import { count, figure } from "./format.js";
import { table } from "./table.js";
import { drawing } from "./svg.js";

const MEANINGS = {
  P: "precision: the share of the first k suggestions that are right",
  nDCG: "gain: right labels count more the higher they are in the list",
  PSP: "precision that counts rare labels more",
  PSnDCG: "gain that counts rare labels more",
  R: "recall: the share of the right labels that are among the first k",
  RP: "precision, of at most as many labels as are right",
  coverage: "labels that are ever suggested",
  ECE: "how far probabilities are from how often labels are right",
};
const GROUPS = { head: "over 100 documents", torso: "26 to 100", tail: "25 or fewer" };
const COLUMNS = {
  n_labels: "labels",
  n_occurrences: "occurrences",
  precision: "precision, %",
  recall: "recall, %",
  macro_f1: "macro F1, %",
};
const DIAGRAMS = [
  [
    "reliability",
    "Are the probabilities right?",
    "Points on the dashed line are exactly right; below it, the model is too sure. Vertical lines are 95 % intervals.",
  ],
  [
    "precision_coverage",
    "How much can be kept?",
    "With a higher threshold, fewer labels are kept (to the left), and more of them are right.",
  ],
];

/** @param {{data: string, figures: Object, svg: Object}} answer */
export function figuresPart({ data, figures, svg }) {
  const n = figures.n ? ` on ${count(figures.n)} documents` : "";
  return [
    el("p", { class: "soft", text: `Measured${n} of ${data}, in percent.` }),
    ...warnings(figures).map((text) => el("p", { class: "wrong", text })),
    metricsTable(figures),
    el("div", { class: "diagrams" }, ...DIAGRAMS.map((one) => diagram(svg, ...one)).filter(Boolean)),
    ...(figures.by_frequency ? [
      el("h3", { text: "By frequency of the labels in training" }),
      frequencyTable(figures.by_frequency),
    ] : []),
  ];
}

/** Warnings about how to read the figures. */
function warnings({ seen_in_training: seen, n_unknown_labels: unknown }) {
  const said = [];
  if (seen) said.push(`${figure(seen)} % of these documents were in the training data.`);
  if (unknown) said.push(`${count(unknown)} of their labels are unknown to the model, and count as missed.`);
  return said;
}

function metricsTable(figures) {
  const keys = Object.keys(figures).filter((key) => /^[A-Za-z]+@\d+$/.test(key));
  const ks = [...new Set(keys.map((key) => key.split("@")[1]))].sort((a, b) => a - b);
  const names = [...new Set(keys.map((key) => key.split("@")[0]))];
  const cell = (metric, k) => {
    const value = figures[`${metric}@${k}`];
    const [low, high] = figures.ci?.[`${metric}@${k}`] ?? [];
    if (value === undefined) return "";
    return low === undefined ? figure(value) : `${figure(value)} (${low.toFixed(1)} to ${high.toFixed(1)})`;
  };
  const rowOf = (metric) => [
    el("span", {}, el("b", { text: metric }), el("small", { class: "meaning", text: MEANINGS[metric] ?? "" })),
    ...ks.map((k) => cell(metric, k)),
  ];
  return table({
    head: ["Metric", ...ks.map((k) => `@${k}`)],
    rows: names.map(rowOf),
    areNumbers: true,
    properties: { "data-testid": "figures" },
  });
}

function frequencyTable(groups) {
  const listed = Object.keys(COLUMNS).filter((column) => Object.values(groups).some((group) => column in group));
  const cell = (values, column) => {
    if (values[column] === undefined) return "";
    return column.startsWith("n_") ? count(values[column]) : figure(values[column]);
  };
  const rows = Object.entries(groups).map(([group, values]) => [
    `${group}${GROUPS[group] ? `: ${GROUPS[group]}` : ""}`,
    ...listed.map((column) => cell(values, column)),
  ]);
  return table({
    head: ["Labels with", ...listed.map((column) => COLUMNS[column])],
    rows,
    areNumbers: true,
    properties: { "data-testid": "by-frequency" },
  });
}

function diagram(svg, key, title, said) {
  const node = svg?.[key] ? drawing(svg[key]) : null;
  return node && el(
    "figure",
    { class: "diagram", "data-testid": key },
    el("figcaption", {}, el("h3", { text: title }), el("p", { class: "hint", text: said })),
    node,
  );
}
