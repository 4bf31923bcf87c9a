// The text: a real textarea, so that pasting, spelling and screen readers work, over a layer that marks words.

import { el, shown } from "./dom.js";
import { count, plural } from "./format.js";
import { store } from "./store.js";

const STRENGTHS = 4; // shades of a mark
const LEAST = 0.08; // of the largest share: less is not worth a mark
const MOST_SHARE = 1 / 8; // of the words of a long text, but at least this many:
const AT_LEAST = 12;

/** The words to highlight, in the order of the text. */
export function wordsToMark({ words, n_words: total }) {
  const ranked = [...words].sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  const largest = Math.abs(ranked[0]?.share ?? 0);
  return ranked
    .slice(0, Math.max(AT_LEAST, Math.floor(MOST_SHARE * total)))
    .filter((word) => Math.abs(word.share) >= LEAST * largest)
    .sort((a, b) => a.start - b.start)
    .map((word) => ({ ...word, strength: Math.ceil((STRENGTHS * Math.abs(word.share)) / largest) }));
}

/** Turns offsets in code points, as the API counts, into those of a JavaScript string. */
export function stringOffsets(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => offset;
  const offsets = [0];
  for (const character of text) offsets.push(offsets.at(-1) + character.length);
  return (offset) => offsets[offset];
}

export class TextPane {
  /** @param {{readOnly?: boolean, onInput?: (text: string, event: InputEvent) => void, onTag?: () => void}} options */
  constructor({ readOnly = false, onInput = null, onClear = null } = {}) {
    this.area = el("textarea", {
      id: "text",
      class: "text-area",
      dir: "auto",
      "data-testid": "text",
      placeholder: "Paste or type a text. Labels are suggested as you type.",
      spellcheck: "false", // its red lines would look like marks
      autocomplete: "off",
      "aria-describedby": "text-size",
      readOnly,
      oninput: (event) => onInput?.(this.area.value, event),
      onscroll: () => this.#follow(),
    });
    this.marks = el("div", { class: "text-marks", dir: "auto" });
    this.legend = el("p", { class: "legend", "data-testid": "legend", hidden: true });
    this.size = el("span", { id: "text-size", class: "text-size" });
    this.clear = el("button", {
      type: "button",
      class: "link",
      text: "Clear",
      "data-testid": "clear",
      onclick: onClear,
    });
    this.clear.hidden = true;
    this.canClear = Boolean(onClear) && !readOnly;
    this.node = el(
      "section",
      { class: "pane text-pane", "aria-label": "Text" },
      el("label", { for: "text", class: "visually-hidden", text: readOnly ? "Text to review" : "Text to tag" }),
      el("div", { class: "text-box" }, el("div", { class: "text-back", "aria-hidden": "true" }, this.marks), this.area),
      el("footer", { class: "text-foot" }, this.legend, el("span", { class: "spring" }), this.size, this.clear),
    );
    new ResizeObserver(() => this.#follow()).observe(this.area);
  }

  get value() {
    return this.area.value;
  }

  set value(text) {
    this.area.value = text;
    this.area.scrollTop = 0;
  }

  /** Shows the length of a long text. */
  describe(text) {
    const limit = store.server.limits.max_text_characters;
    const words = text.trim() ? text.trim().split(/\s+/).length : 0;
    const isLong = text.length > 0.8 * limit;
    this.size.textContent = !words
      ? ""
      : isLong
        ? `${count(text.length)} of at most ${count(limit)} characters`
        : plural(words, "word");
    this.size.classList.toggle("is-wrong", text.length > limit);
    this.clear.hidden = !text || !this.canClear;
  }

  /** Marks the words that speak for and against a label. */
  mark(label, explanation) {
    const text = this.area.value;
    const at = stringOffsets(text);
    const parts = [];
    let from = 0;
    for (const word of wordsToMark(explanation)) {
      const [start, end] = [at(word.start), at(word.end)];
      if (!(start >= from && end > start && end <= text.length)) continue; // of another text, or overlapping
      const kind = word.share > 0 ? "for" : "against";
      parts.push(
        text.slice(from, start),
        el("mark", { class: `${kind} ${kind}-${word.strength}`, text: text.slice(start, end) }),
      );
      from = end;
    }
    // A last line that is empty has a height in a textarea, but not in a div.
    this.marks.replaceChildren(...parts, `${text.slice(from)}\n`);
    this.#setLegend(label, parts);
    this.#follow();
  }

  #setLegend(label, parts) {
    const has = (kind) => parts.some((part) => part.className?.startsWith(kind));
    this.legend.replaceChildren(
      ...(has("for") ? [el("mark", { class: "for for-3", text: "for" }), " "] : []),
      ...(has("against") ? [el("mark", { class: "against against-3", text: "against" }), " "] : []),
      el("bdi", { text: shown(label.name) }),
    );
    this.legend.hidden = !(has("for") || has("against"));
  }

  unmark() {
    this.marks.replaceChildren();
    this.legend.hidden = true;
  }

  // The layer has the width of the text without its scroll bar, and moves with it.
  #follow() {
    this.marks.style.width = `${this.area.clientWidth}px`;
    this.marks.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }
}
