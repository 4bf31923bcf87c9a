// Filters: branches to suggest from and labels to leave out, as chips and in the tree.

import { api } from "./api.js";
import { el, name, uniqueId } from "./dom.js";
import { count, plural } from "./format.js";
import { icon } from "./icons.js";
import { notify, notifyError } from "./notices.js";
import { store } from "./store.js";

const MOST_EXCLUDED = 1000; // labels of a request: the API leaves out single labels, so a branch is listed

/** A button that opens the tree, and a chip for each filter. */
export class Filters {
  constructor() {
    const id = uniqueId("filter");
    this.toggle = el(
      "button",
      {
        type: "button",
        class: "button is-quiet",
        "data-testid": "filter",
        "aria-expanded": "false",
        "aria-controls": id,
        onclick: () => this.open(this.panel.hidden),
      },
      icon("filter"),
      "Filter",
    );
    this.tree = null;
    this.panel = el(
      "div",
      { class: "filter-panel", id, hidden: true },
      el(
        "p",
        { class: "hint" },
        el("b", { text: "Only" }),
        " keeps a branch: a label and all below it. ",
        el("b", { text: "Not" }),
        " leaves labels out. Keys: ",
        el("kbd", { text: "+" }),
        " ",
        el("kbd", { text: "-" }),
      ),
    );
    this.chips = new FilterChips();
  }

  async open(isOpen) {
    this.panel.hidden = !isOpen;
    this.toggle.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen || this.loaded === store.model.id) return;
    this.loaded = store.model.id;
    this.tree ??= await this.#plant();
    await this.tree.load();
  }

  // Most visits never open the tree, so its script waits until then.
  async #plant() {
    const { LabelTree } = await import("./tree.js");
    const tree = new LabelTree({ onChoose: choose, modeOf: (label) => store.filters.get(label)?.mode });
    this.panel.append(tree.node);
    return tree;
  }

  update() {
    if (this.loaded && this.loaded !== store.model.id) {
      this.loaded = null;
      this.open(!this.panel.hidden);
    }
    this.tree?.update();
    this.chips.update();
  }
}

/** The filters in use, each with a button that removes it. */
export class FilterChips {
  constructor() {
    this.node = el("div", { class: "chips", "data-testid": "filter-chips", hidden: true });
  }

  update() {
    const filters = [...store.filters.values()];
    this.node.hidden = filters.length === 0;
    this.node.replaceChildren(...filters.map(chip));
    if (filters.length) {
      const clear = el("button", {
        type: "button",
        class: "link",
        text: "Clear filters",
        "data-testid": "clear-filters",
        onclick: () => store.clearFilters(),
      });
      this.node.append(clear);
    }
  }
}

function chip(filter) {
  const scope = filter.scope ? ` (${filter.scope})` : "";
  return el(
    "span",
    { class: `chip is-${filter.mode}`, "data-testid": "filter-chip" },
    el("span", { class: "chip-kind", text: filter.mode }),
    name(filter.name),
    scope,
    el(
      "button",
      {
        type: "button",
        class: "chip-remove",
        "aria-label": `Remove the filter ${filter.name}`,
        onclick: () => store.setFilter(filter.label, null),
      },
      icon("reject"),
    ),
  );
}

async function choose(item, mode) {
  if (store.filters.get(item.value)?.mode === mode) {
    store.setFilter(item.value, null);
    return;
  }
  const filter = { mode, label: item.value, name: item.name, isLeaf: item.isLeaf, labels: [item.value], scope: "" };
  try {
    if (mode === "not" && !item.isLeaf) await excludeBranch(filter, item);
  } catch (error) {
    notifyError(error, "The labels below could not be listed");
    return;
  }
  store.setFilter(item.value, filter);
}

/** Lists the labels of a branch; of a branch that is too large only the label itself is left out, with a notice. */
async function excludeBranch(filter, item) {
  const excluded = store.filterOptions().exclude.length;
  if (excluded + item.n_below + 1 > MOST_EXCLUDED) {
    filter.scope = "itself only";
    notify(
      `The branch has ${count(item.n_below)} labels, but at most ${count(MOST_EXCLUDED)} can be left out. ` +
        "Only the label itself is left out; open the branch to leave out parts of it.",
    );
    return;
  }
  filter.labels = await labelsOfBranch(item.value);
  filter.scope = plural(filter.labels.length, "label");
}

async function labelsOfBranch(root) {
  const found = new Set([root]);
  let open = [root];
  while (open.length) {
    const levels = await Promise.all(open.map((path) => api.tree(store.model.id, { path, limit: MOST_EXCLUDED })));
    const items = levels.flatMap((level) => level.items).filter((item) => !found.has(item.value));
    for (const item of items) found.add(item.value);
    open = [...new Set(items.filter((item) => !item.isLeaf).map((item) => item.value))];
  }
  return [...found];
}
