// The labels as a tree that loads level by level: the tree pattern of ARIA.

import { api } from "./api.js";
import { el, name, shown } from "./dom.js";
import { count } from "./format.js";
import { icon } from "./icons.js";
import { notifyError } from "./notices.js";
import { store } from "./store.js";

const PAGE = 50; // labels of a level that are loaded at a time

/** @typedef {{value: string, name: string, hint: string, isLeaf: boolean, count: number, n_below: number}} Item */
export class LabelTree {
  /** @param {{onChoose: (item: Item, mode: "only"|"not") => void, modeOf: (label: string) => ?string}} options */
  constructor({ onChoose, modeOf }) {
    Object.assign(this, { onChoose, modeOf });
    this.items = new WeakMap();
    this.node = el("ul", { role: "tree", class: "tree", "aria-label": "Labels", "data-testid": "tree" });
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("focusin", (event) => this.#rove(event.target.closest("[role=treeitem]")));
  }

  async load() {
    this.node.replaceChildren();
    await this.#more(this.node, null, 1, 0);
    this.#rove(this.node.querySelector("[role=treeitem]"));
  }

  async #more(list, path, level, offset) {
    try {
      const { items, total } = await api.tree(store.model.id, { path, limit: PAGE, offset });
      list.append(...items.map((item, at) => this.#item(item, level, offset + at + 1, total)));
      const loaded = offset + items.length;
      if (items.length && loaded < total) list.append(this.#moreItem(list, path, level, loaded, total));
    } catch (error) {
      notifyError(error, "The labels could not be loaded");
    }
  }

  #item(item, level, place, total) {
    const toggle = el("span", { class: "twist", "aria-hidden": "true" }, !item.isLeaf && icon("chevron"));
    const line = el(
      "div",
      { class: "tree-line" },
      toggle,
      el("span", { class: "tree-name" }, name(item.name), item.hint && name(item.hint, { class: "synonym" })),
      el("span", { class: "tree-count", text: item.isLeaf ? "" : count(item.n_below), title: "labels below" }),
      this.#choice(item, "only"),
      this.#choice(item, "not"),
    );
    const node = el(
      "li",
      {
        role: "treeitem",
        class: "tree-item",
        "data-testid": "tree-item",
        "data-label": item.value,
        "aria-level": level,
        "aria-setsize": total,
        "aria-posinset": place,
        "aria-expanded": item.isLeaf ? null : "false",
        tabindex: "-1",
      },
      line,
    );
    line.addEventListener("click", () => this.#toggle(node));
    this.items.set(node, item);
    this.#showMode(node);
    return node;
  }

  // Out of the order of tabs: the keys + and - do the same on the item itself, as its name says.
  #choice(item, mode) {
    const [text, title] = mode === "only" ? ["Only", onlyTitle(item)] : ["Not", notTitle(item)];
    const onclick = (event) => {
      event.stopPropagation();
      this.onChoose(item, mode);
    };
    return el("button", {
      type: "button",
      class: `tree-choice ${mode}`,
      tabindex: "-1",
      "data-testid": `tree-${mode}`,
      title,
      "aria-label": title,
      "aria-pressed": "false",
      text,
      onclick,
    });
  }

  #moreItem(list, path, level, offset, total) {
    const text = `Load more (${count(total - offset)})`;
    const node = el(
      "li",
      { role: "treeitem", class: "tree-item", "aria-level": level, tabindex: "-1", "data-testid": "tree-more" },
      el("div", { class: "tree-line link", text }),
    );
    node.addEventListener("click", async (event) => {
      event.stopPropagation();
      const before = node.previousElementSibling;
      const hadFocus = node.contains(document.activeElement);
      node.remove();
      await this.#more(list, path, level, offset);
      if (hadFocus) (before.nextElementSibling ?? before).focus();
    });
    return node;
  }

  async #toggle(node, open = node.getAttribute("aria-expanded") !== "true") {
    const item = this.items.get(node);
    if (!item || item.isLeaf) return;
    node.setAttribute("aria-expanded", String(open));
    let group = node.querySelector(":scope > [role=group]");
    if (open && !group) {
      group = el("ul", { role: "group" });
      node.append(group);
      await this.#more(group, item.value, Number(node.getAttribute("aria-level")) + 1, 0);
    }
    if (group) group.hidden = !open;
  }

  /** Shows which labels are filters. */
  update() {
    for (const node of this.node.querySelectorAll("[role=treeitem]")) this.#showMode(node);
  }

  #showMode(node) {
    const item = this.items.get(node);
    if (!item) return;
    const mode = this.modeOf(item.value);
    node.dataset.mode = mode ?? "";
    const said = { only: ", only these", not: ", left out" }[mode] ?? "";
    node.setAttribute("aria-label", `${shown(item.name)}${said}`);
    for (const choice of node.querySelectorAll(":scope > .tree-line > .tree-choice")) {
      choice.setAttribute("aria-pressed", String(choice.classList.contains(mode)));
    }
  }

  #rove(node) {
    if (!node) return;
    this.node.querySelector("[role=treeitem][tabindex='0']")?.setAttribute("tabindex", "-1");
    node.setAttribute("tabindex", "0");
  }

  #visible() {
    return [...this.node.querySelectorAll("[role=treeitem]")].filter((node) => !node.closest("[role=group][hidden]"));
  }

  #key(event) {
    const node = event.target.closest("[role=treeitem]");
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = this.#actions(node)[event.key];
    if (action) action();
    else if (/^\p{L}$/u.test(event.key)) this.#typeAhead(node, event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #actions(node) {
    const item = this.items.get(node);
    const visible = this.#visible();
    const at = visible.indexOf(node);
    const isOpen = node.getAttribute("aria-expanded") === "true";
    const choose = (mode) => (item ? () => this.onChoose(item, mode) : () => node.click());
    return {
      ArrowDown: () => visible[at + 1]?.focus(),
      ArrowUp: () => visible[at - 1]?.focus(),
      Home: () => visible[0].focus(),
      End: () => visible.at(-1).focus(),
      ArrowRight: () => (isOpen ? visible[at + 1]?.focus() : this.#toggle(node, true)),
      ArrowLeft: () => (isOpen ? this.#toggle(node, false) : node.parentElement.closest("[role=treeitem]")?.focus()),
      Enter: item?.isLeaf || !item ? choose("only") : () => this.#toggle(node),
      " ": choose("only"),
      "+": choose("only"),
      "-": choose("not"),
      Delete: choose("not"),
    };
  }

  #typeAhead(node, letter) {
    const visible = this.#visible();
    const at = visible.indexOf(node);
    const starts = (one) => this.items.get(one)?.name.toLowerCase().startsWith(letter.toLowerCase());
    [...visible.slice(at + 1), ...visible.slice(0, at)].find(starts)?.focus();
  }
}

const onlyTitle = (item) =>
  `Only suggest ${shown(item.name)}${item.isLeaf ? "" : ` and the ${count(item.n_below)} labels below it`}`;

const notTitle = (item) =>
  `Never suggest ${shown(item.name)}${item.isLeaf ? "" : ` nor the ${count(item.n_below)} labels below it`}`;
