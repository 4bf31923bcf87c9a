// Search for a label as you type: the combobox pattern of ARIA, with the keyboard all the way.

import { api } from "./api.js";
import { el, name, pathNode, shown, tooltip, uniqueId } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { notifyError } from "./notices.js";
import { store } from "./store.js";

const TYPING_PAUSE = 120; // milliseconds
const LIMIT = 20;

/** A name with the words of the query in bold. */
function highlighted(text, query) {
  const node = el("bdi");
  const plain = shown(text);
  const words = query.trim().split(/\s+/).filter(Boolean).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = words.length ? plain.split(new RegExp(`(${words.join("|")})`, "i")) : [plain];
  parts.forEach((part, at) => node.append(at % 2 ? el("b", { text: part }) : part));
  return node;
}

export class LabelSearch {
  /**
   * @param {{onPick: (label: Object) => void, isChosen?: (label: string) => boolean, onLeave: () => void,
   *   title?: string, testid?: string, key?: ?string, isHidden?: (label: Object) => boolean,
   *   picked?: (label: Object) => string}} options
   * `title` names the field, `key` leads to it, and `picked` says what became of a label.
   */
  constructor({
    onPick,
    isChosen = () => false,
    onLeave,
    title = "Add a label",
    testid = "search",
    key = "/",
    isHidden = () => false,
    picked = (label) => `${shown(label.name)} added`,
  }) {
    Object.assign(this, { onPick, isChosen, onLeave, isHidden, picked, found: [], active: -1, request: null });
    const id = uniqueId("options");
    this.list = el("ul", { id, role: "listbox", class: "options", "aria-label": "Labels", hidden: true });
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the input keeps the focus
    this.input = el("input", {
      type: "text",
      id: uniqueId("search"),
      class: "search-input",
      "data-testid": testid,
      placeholder: title,
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": title,
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": id,
      oninput: () => this.#later(),
      onfocus: () => this.#look(),
      onblur: () => this.close(),
      onkeydown: (event) => this.#key(event),
    });
    this.said = el("span", { class: "visually-hidden", "aria-live": "polite" });
    this.node = el(
      "div",
      { class: "search" },
      icon("search"),
      this.input,
      key && el("kbd", { text: key, "aria-hidden": "true" }),
      this.list,
      this.said,
    );
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  #later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#look(), TYPING_PAUSE);
  }

  async #look() {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    const query = this.input.value;
    try {
      const { labels } = await api.labels(store.model.id, { q: query.trim(), limit: LIMIT }, request.signal);
      const offered = labels.filter((label) => !this.isHidden(label));
      if (request === this.request && document.activeElement === this.input) this.#show(offered, query);
    } catch (error) {
      if (request === this.request) notifyError(error, "The search failed");
    }
  }

  #show(labels, query) {
    this.found = labels;
    this.list.replaceChildren(...labels.map((label, at) => this.#option(label, at, query)));
    if (!labels.length) this.list.append(el("li", {
      class: "option-none",
      role: "presentation",
      text: "No label has this name.",
    }));
    this.said.textContent = labels.length ? "" : "No label has this name.";
    this.#setActive(query.trim() && labels.length ? 0 : -1);
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    const below = innerHeight - this.node.getBoundingClientRect().bottom;
    this.list.classList.toggle("opens-up", below < 260);
  }

  #option(label, at, query) {
    const isChosen = this.isChosen(label.label);
    return el(
      "li",
      {
        role: "option",
        id: `${this.list.id}-${at}`,
        class: "option",
        "data-testid": "search-option",
        "aria-selected": "false",
        onclick: () => this.#pick(at),
      },
      el(
        "span",
        { class: "option-words" },
        label.path.length > 0 && pathNode(label.path),
        el(
          "span",
          { class: "option-name" },
          highlighted(label.name, query),
          label.synonym && el("span", { class: "synonym" }, highlighted(label.synonym, query)),
        ),
        label.description &&
          el("span", { class: "option-description", dir: "auto", text: tooltip(label.description) }),
      ),
      label.match === "typo" && el("span", { class: "tag", text: "similar" }),
      el("span", {
        class: "option-count",
        text: isChosen ? "chosen" : count(label.count),
        title: isChosen ? null : "training documents",
      }),
    );
  }

  #setActive(at) {
    this.active = at;
    [...this.list.children].forEach((node, index) => {
      if (node.getAttribute("role") === "option") node.setAttribute("aria-selected", String(index === at));
    });
    const active = this.list.children[at];
    if (active && at >= 0) {
      this.input.setAttribute("aria-activedescendant", active.id);
      active.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    const last = this.found.length - 1;
    const moves = {
      ArrowDown: Math.min(this.active + 1, last),
      ArrowUp: Math.max(this.active - 1, 0),
      PageDown: last,
      PageUp: 0,
    };
    if (event.key in moves && !this.list.hidden) {
      event.preventDefault();
      this.#setActive(moves[event.key]);
    } else if (event.key === "ArrowDown") this.#look();
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      if (!this.list.hidden && this.active >= 0) this.#pick(this.active);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.input.value || !this.list.hidden) this.#empty();
      else this.onLeave();
    }
  }

  #pick(at) {
    const label = this.found[at];
    this.said.textContent = this.picked(label);
    this.#empty();
    this.onPick(label);
  }

  #empty() {
    this.input.value = "";
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = null;
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
