// The list of suggestions: each can be explained, accepted and rejected, and stays in its place when decided.

import { el, name, pathNode, pathText, setGauge, shown, tooltip } from "./dom.js";
import { certainty, percent, plural } from "./format.js";
import { icon } from "./icons.js";

const HOVER_PAUSE = 120; // milliseconds: a pointer that only passes asks for nothing

export class SuggestionList {
  /** @param {{session: import("./session.js").Session, onSelect: Function, onPreview: Function}} options */
  constructor({ session, onSelect, onPreview }) {
    Object.assign(this, { session, onSelect, onPreview });
    this.rows = new Map();
    this.selected = null;
    this.sure = el("ol", { class: "suggestions", "data-testid": "suggestions", "aria-label": "Suggested labels" });
    this.unsure = el("ol", { class: "suggestions", "aria-label": "Less sure labels" });
    this.foldTitle = el("summary", { "data-testid": "less-sure-title" });
    this.fold = el("details", { class: "fold", "data-testid": "less-sure", hidden: true }, this.foldTitle, this.unsure);
    this.earlier = el("ol", { class: "suggestions", "aria-label": "Rejected earlier" });
    this.earlierPart = el(
      "div",
      { class: "earlier", hidden: true },
      el("h3", { text: "Rejected earlier" }),
      this.earlier,
    );
    this.empty = el("p", { class: "empty", hidden: true, "data-testid": "none-sure" });
    this.node = el("div", { class: "suggestion-parts" }, this.empty, this.sure, this.fold, this.earlierPart);
    this.node.addEventListener("pointerover", (event) => this.#hover(event));
    this.node.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.#hover(null));
  }

  /** Shows what the session has; rows of the same label are kept, and with them the focus. */
  update() {
    const focused = document.activeElement;
    const { sure, unsure } = this.session.bySureness();
    const listed = new Set(this.session.suggestions.map((one) => one.label));
    const earlier = this.session.labelsOf("rejected").filter((label) => !listed.has(label.label));
    const kept = new Map();
    const place = (list, labels) =>
      list.replaceChildren(...labels.map((label) => {
        const row = this.rows.get(label.label) ?? this.#row(label);
        kept.set(label.label, row);
        this.#fill(row, label);
        return row.node;
      }));
    place(this.sure, sure);
    place(this.unsure, unsure);
    place(this.earlier, earlier);
    this.rows = kept;
    this.fold.hidden = unsure.length === 0;
    this.earlierPart.hidden = earlier.length === 0;
    this.foldTitle.textContent = `less sure (${unsure.length})`;
    this.#sayNoneSure(sure, unsure);
    this.#keepSelection(sure, unsure);
    if (focused !== document.activeElement && this.node.contains(focused)) focused.focus();
  }

  #sayNoneSure(sure, unsure) {
    this.empty.hidden = sure.length > 0 || unsure.length === 0;
    if (!this.empty.hidden) {
      this.empty.textContent = `No label is sure enough. The best one is right with a probability of ${percent(unsure[0].probability)}.`;
    }
  }

  #keepSelection(sure, unsure) {
    const first = (sure[0] ?? unsure[0])?.label ?? null;
    if (!this.rows.has(this.selected)) this.selected = first;
    this.#showSelection();
  }

  #row(label) {
    const row = { label };
    const decide = (state) => () => {
      this.select(row.label.label);
      this.session.decide(row.label, state);
    };
    row.path = el("span", { class: "suggestion-path" });
    row.name = el("span", { class: "suggestion-name" });
    row.fill = el("span", { class: "gauge-fill" });
    row.number = el("span", { class: "suggestion-number" });
    row.main = el(
      "button",
      {
        type: "button",
        class: "suggestion-main",
        "data-testid": "suggestion-name",
        onclick: () => this.onSelect(row.label, true),
        onfocus: () => this.select(row.label.label),
      },
      el("span", { class: "suggestion-words" }, row.path, row.name),
      el(
        "span",
        { class: "suggestion-sure" },
        el("span", { class: "gauge", "aria-hidden": "true" }, row.fill),
        row.number,
      ),
    );
    row.accept = this.#choice("accept", decide("accepted"), "Accept", "A");
    row.reject = this.#choice("reject", decide("rejected"), "Reject", "R");
    row.node = el(
      "li",
      { class: "suggestion", "data-testid": "suggestion" },
      row.main,
      el("span", { class: "choices" }, row.accept, row.reject),
    );
    return row;
  }

  #choice(kind, onclick, title, key) {
    return el(
      "button",
      { type: "button", class: `choice ${kind}`, "data-testid": kind, title: `${title} (${key})`, onclick },
      icon(kind),
    );
  }

  #fill(row, label) {
    row.label = label;
    const state = this.session.stateOf(label.label);
    row.node.dataset.label = label.label;
    row.node.dataset.state = state ?? "open";
    row.path.replaceChildren(...(label.path.length ? [pathNode(label.path)] : []));
    row.path.title = pathText(label.path);
    row.name.replaceChildren(name(label.name), ...(label.synonym ? [name(label.synonym, { class: "synonym" })] : []));
    const best = this.session.suggestions[0];
    // Bare scores have no scale of their own: the best one fills the bar.
    setGauge(row.fill, label.probability ?? (best?.score > 0 ? (label.score ?? 0) / best.score : 0));
    row.name.title = tooltip(label.description);
    row.number.textContent = label.score === undefined ? "" : certainty(label);
    const isAccepted = state === "accepted" || state === "added";
    row.accept.setAttribute("aria-pressed", String(isAccepted));
    row.reject.setAttribute("aria-pressed", String(state === "rejected"));
    row.accept.setAttribute("aria-label", `Accept ${shown(label.name)}`);
    row.reject.setAttribute("aria-label", `Reject ${shown(label.name)}`);
  }

  select(label) {
    if (label === this.selected || !this.rows.has(label)) return;
    this.selected = label;
    this.#showSelection();
    this.onSelect(this.rows.get(label).label, false);
  }

  // One row is in the order of tabs, so that ten suggestions are not thirty stops.
  #showSelection() {
    for (const [label, row] of this.rows) {
      const isSelected = label === this.selected;
      row.node.classList.toggle("is-selected", isSelected);
      row.main.setAttribute("aria-current", String(isSelected));
      for (const control of [row.main, row.accept, row.reject]) control.tabIndex = isSelected ? 0 : -1;
    }
  }

  get selectedLabel() {
    return this.rows.get(this.selected)?.label ?? null;
  }

  #visible() {
    return [...this.rows.values()].filter((row) => row.node.checkVisibility?.() ?? row.node.offsetParent);
  }

  /** Moves the focus by some rows; to the selected row if the list has no focus yet. */
  move(step) {
    const visible = this.#visible();
    if (!visible.length) return;
    const at = visible.findIndex((row) => row.label.label === this.selected);
    const isInside = this.node.contains(document.activeElement);
    const next = isInside ? Math.min(Math.max(at + step, 0), visible.length - 1) : Math.max(at, 0);
    visible[next].main.focus();
    visible[next].node.scrollIntoView({ block: "nearest" });
  }

  focus() {
    this.move(0);
  }

  decideSelected(state) {
    if (this.selectedLabel) this.session.decide(this.selectedLabel, state);
  }

  #hover(event) {
    if (event?.pointerType === "touch") return; // a finger does not hover
    clearTimeout(this.hoverTimer);
    const node = event?.target.closest?.(".suggestion");
    const row = node && [...this.rows.values()].find((one) => one.node === node);
    this.hoverTimer = setTimeout(() => this.onPreview(row?.label ?? null), HOVER_PAUSE);
  }

  /** The row of a label, for what is shown inside of it. */
  nodeOf(label) {
    return this.rows.get(label)?.node ?? null;
  }
}

/** How many suggestions there are, in words; the fold says how many more are less sure. */
export const summary = (session) => plural(session.bySureness().sure.length, "suggestion");
