// "How sure": a slider over the precisions that the model can reach, with the share of right labels that each finds.

import { el } from "./dom.js";
import { percent } from "./format.js";
import { store } from "./store.js";

const ESTIMATE = "An estimate: there were too few held-out documents to confirm this precision.";

/** The meaning of the slider's position. */
export function meaning(row, k) {
  if (!row) return { short: "everything", long: `The ${k} best labels, sure or not.` };
  const found = `about ${percent(row.coverage)} of the right labels are found`;
  return {
    short: `${percent(row.precision)} right`,
    long: `About ${percent(row.precision)} of the shown labels are right; ${found}.`,
  };
}

export class SureSlider {
  constructor() {
    this.input = el("input", {
      type: "range",
      id: "sure",
      class: "slider",
      step: "1",
      min: "49",
      "data-testid": "sure",
      "aria-describedby": "sure-meaning",
      oninput: () => store.setSure(Number(this.input.value) / 100),
    });
    this.value = el("output", { for: "sure", class: "sure-value", "data-testid": "sure-value" });
    this.meaning = el("p", { id: "sure-meaning", class: "sure-meaning", "data-testid": "sure-meaning" });
    this.node = el(
      "div",
      { class: "sure", "data-testid": "sure-part" },
      el("div", { class: "sure-line" }, el("label", { for: "sure", text: "How sure" }), this.input, this.value),
      this.meaning,
    );
  }

  update() {
    const rows = store.precisionRows();
    this.node.hidden = rows.length === 0;
    if (!rows.length) return;
    const highest = Math.round(100 * rows.at(-1).precision);
    this.input.max = String(highest);
    this.input.value = String(Math.min(Math.round(100 * store.sure), highest));
    const row = store.precisionRow();
    const { short, long } = meaning(row, store.k);
    this.value.textContent = short;
    this.input.setAttribute("aria-valuetext", short);
    this.meaning.textContent = long;
    if (row && !row.shown) this.meaning.append(" ", el("span", { class: "tag", text: "estimate", title: ESTIMATE }));
    const at = (Number(this.input.value) - 49) / Math.max(highest - 49, 1);
    this.input.style.setProperty("--at", `${(100 * at).toFixed(1)}%`);
  }
}
