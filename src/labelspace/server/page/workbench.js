// The workbench for one document: text, suggestions, chosen labels, and reasons. Tag and Review share it.

import { api } from "./api.js";
import { Chosen } from "./chosen.js";
import { el, name } from "./dom.js";
import { Filters } from "./filters.js";
import { count, milliseconds } from "./format.js";
import { bindKeys } from "./keys.js";
import { sentence } from "./notices.js";
import { store } from "./store.js";
import { SuggestionList, summary } from "./suggestions.js";
import { SureSlider } from "./sure.js";
import { TextPane } from "./text.js";
import { WhyPane } from "./why.js";

const NARROW = matchMedia("(max-width: 899px)"); // as in workbench.css
const NUMBERS = [5, 10, 20, 50, 100]; // of suggestions
const EXAMPLES = 12; // labels that are named while there is no text

export class Workbench {
  /**
   * @param {{session: import("./session.js").Session, signal: AbortSignal, readOnly?: boolean, actions?: Node[],
   *   onInput?: Function, onClear?: Function}} options
   */
  constructor({ session, signal, readOnly = false, actions = [], onInput = null, onClear = null }) {
    this.session = session;
    this.text = new TextPane({ readOnly, onInput, onClear });
    this.why = new WhyPane(session);
    this.list = new SuggestionList({
      session,
      onSelect: (label, isClick) => this.#select(label, isClick),
      onPreview: (label) => this.#preview(label),
    });
    this.sure = new SureSlider();
    this.filters = new Filters();
    this.chosen = new Chosen({ session, actions, onLeave: () => this.list.focus() });
    this.node = el("div", { class: "workbench" }, this.text.node, this.#listPane(), this.why.node);
    this.#listen(signal);
    this.#bindKeys(signal);
    this.refresh();
  }

  #listPane() {
    this.status = el("span", { role: "status", "data-testid": "status" });
    this.time = el("span", { class: "time", "data-testid": "time", title: "from question to answer" });
    this.intro = el("div", { class: "intro", "data-testid": "intro" });
    this.message = el("p", { class: "message", hidden: true, "data-testid": "message" });
    this.number = el(
      "select",
      {
        "aria-label": "Number of suggestions",
        "data-testid": "number",
        onchange: () => store.setK(Number(this.number.value)),
      },
    );
    const head = el(
      "header",
      { class: "list-head" },
      el("h2", { text: "Suggestions" }),
      el("p", { class: "status" }, this.status, this.time),
      el("span", { class: "spring" }),
      el("span", { class: "select-line" }, el("span", { "aria-hidden": "true", text: "at most" }), this.number),
      this.filters.toggle,
    );
    this.scroll = el("div", { class: "list-scroll" }, this.message, this.intro, this.list.node);
    return el(
      "section",
      { class: "pane list-pane", "aria-label": "Suggestions" },
      el("div", { class: "list-top" }, head, this.sure.node, this.filters.chips.node, this.filters.panel),
      this.scroll,
      this.chosen.node,
    );
  }

  #listen(signal) {
    const { session } = this;
    const listen = (event, listener) => session.addEventListener(event, listener, { signal });
    listen("text", () => this.#onText());
    listen("busy", () => this.node.classList.toggle("is-busy", session.isBusy));
    listen("suggestions", () => this.#onSuggestions());
    listen("decisions", () => {
      this.list.update();
      this.chosen.update();
    });
    store.on("sure", () => this.#onSuggestions(), signal);
    store.on("options", () => this.#onOptions(), signal);
    NARROW.addEventListener("change", () => this.#placeWhy(null), { signal });
  }

  #bindKeys(signal) {
    const { list, session } = this;
    const isFree = (target) => target === document.body || target.matches("main") || list.node.contains(target);
    const decide = (state) => () => list.decideSelected(state);
    bindKeys(
      "Suggestions",
      [
        { keys: ["j"], shown: "J", text: "Next suggestion", run: () => list.move(1) },
        { keys: ["k"], shown: "K", text: "Previous suggestion", run: () => list.move(-1) },
        {
          keys: ["ArrowDown"],
          shown: "↓",
          text: "Next suggestion, in the list",
          where: isFree,
          run: () => list.move(1),
        },
        {
          keys: ["ArrowUp"],
          shown: "↑",
          text: "Previous suggestion, in the list",
          where: isFree,
          run: () => list.move(-1),
        },
        { keys: ["a"], shown: "A", text: "Accept, or undo", run: decide("accepted") },
        { keys: ["r"], shown: "R", text: "Reject, or undo", run: decide("rejected") },
        { keys: ["/"], shown: "/", text: "Search for a label to add", run: () => this.chosen.search.focus() },
        { keys: ["f"], shown: "F", text: "Filter by branch", run: () => this.filters.toggle.click() },
        { keys: ["t"], shown: "T", text: "To the text", run: () => this.text.area.focus() },
        { keys: ["Escape"], shown: "Esc", text: "Back to the list", inText: true, run: () => list.focus() },
        { keys: ["Ctrl+Enter"], shown: "Ctrl Enter", text: "Suggest now", inText: true, run: () => session.suggest() },
      ],
      signal,
    );
  }

  /** Shows everything anew, as after a change of the model. */
  refresh() {
    const most = Math.min(store.server.limits.max_k, store.model.n_labels);
    const numbers = NUMBERS.filter((n) => n <= most || n === NUMBERS[0]);
    this.number.replaceChildren(...numbers.map((n) => el("option", { value: n, text: n, selected: n === store.k })));
    if (this.text.value !== this.session.text) this.text.value = this.session.text;
    this.filters.update();
    this.#fillIntro();
    this.#onText();
    this.#onSuggestions();
    this.chosen.update();
  }

  async #fillIntro() {
    const { model } = store;
    const text = el("p", { text: `This model knows ${count(model.n_labels)} labels.` });
    this.intro.replaceChildren(text);
    try {
      const { labels } = await api.labels(model.id, { limit: EXAMPLES });
      if (model !== store.model) return;
      text.textContent = `This model knows ${count(model.n_labels)} labels. The most frequent are:`;
      this.intro.append(el(
        "ul",
        { class: "chips" },
        ...labels.map((label) => el("li", { class: "chip is-example" }, name(label.name))),
      ));
    } catch {
      // Only examples are missing: no notice is needed.
    }
  }

  #onText() {
    this.text.describe(this.session.text);
    this.#unmark();
  }

  #onOptions() {
    this.filters.update();
    this.sure.update();
    this.session.suggest();
  }

  #onSuggestions() {
    const { session } = this;
    const hasText = Boolean(session.text.trim());
    this.sure.update();
    this.list.update();
    this.#placeWhy(this.opened);
    this.intro.hidden = hasText;
    this.status.textContent = hasText && !session.isBusy ? summary(session) : "";
    this.time.textContent = session.elapsed === null ? "" : milliseconds(session.elapsed);
    const said = session.problem?.message ?? session.note ?? this.#nothing(hasText);
    this.message.hidden = !said || (!hasText && !session.problem);
    this.message.classList.toggle("is-error", Boolean(session.problem));
    this.message.textContent = said ? sentence(said) : "";
    this.#showSelected();
    if (session.version && session.version !== store.model.version) this.#renew();
  }

  // The server may have loaded another version of the model, which has other thresholds.
  async #renew() {
    try {
      store.updateModel(await api.model(store.model.id));
      this.session.version = store.model.version;
      this.sure.update();
      this.list.update();
    } catch {
      // The next answer tries again.
    }
  }

  #nothing(hasText) {
    const isEmpty = hasText && !this.session.isBusy && !this.session.suggestions.length;
    return isEmpty && (store.filters.size ? "no label passes the filters" : "no label is suggested");
  }

  #showSelected() {
    const label = this.list.selectedLabel;
    if (NARROW.matches) {
      const opened = this.opened && this.list.rows.get(this.opened)?.label;
      if (opened) this.#explain(opened);
      return;
    }
    if (!label) {
      this.why.clear();
      this.#unmark();
    } else this.#explain(label);
  }

  #select(label, isClick) {
    if (!NARROW.matches) {
      if (!isClick || this.why.label?.label !== label.label) this.#explain(label);
    } else if (isClick) {
      this.#placeWhy(this.opened === label.label ? null : label.label);
      if (this.opened) this.#explain(label);
      else this.#unmark();
    }
  }

  #explain(label) {
    this.why.show(label);
    this.#mark(label);
  }

  // On a narrow page the reasons unfold under their suggestion: a panel elsewhere would be out of sight.
  #placeWhy(label) {
    const row = NARROW.matches && label ? this.list.nodeOf(label) : null;
    this.opened = row ? label : null;
    if (row) row.append(this.why.node);
    else if (this.why.node.parentElement !== this.node) this.node.append(this.why.node);
    this.why.node.hidden = NARROW.matches && !row;
  }

  #preview(label) {
    const shown = label ?? (NARROW.matches ? null : this.list.selectedLabel);
    if (shown) this.#mark(shown);
    else this.#unmark();
  }

  #unmark() {
    this.marked = null;
    this.text.unmark();
  }

  async #mark(label) {
    if (!store.model.explains) return;
    this.marked = label;
    const { text } = this.session;
    try {
      const explanation = await this.session.explain(label.label);
      const isCurrent = this.marked === label && text === this.session.text && text === this.text.value;
      if (isCurrent) this.text.mark(label, explanation);
    } catch {
      this.#unmark(); // the panel next to the list says why
    }
  }
}
