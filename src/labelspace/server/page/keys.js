// Keys for everything: views bind theirs, one listener runs them, one dialog lists them.

import { el } from "./dom.js";
import { keepSetting, setting } from "./storage.js";

/**
 * @typedef {{keys: string[], shown: string, text: string, run: (event: KeyboardEvent) => void, inText?: boolean,
 *   where?: (target: Element) => boolean}} Binding
 * `inText`: works while typing, too. `where`: only where this holds for the element that has the focus.
 */

const EVERYWHERE = ["Views", "Page"]; // groups of all views
/** @type {Map<string, Binding[]>} */
const groups = new Map();

/** Binds keys until the signal is aborted. */
export function bindKeys(group, bindings, signal) {
  groups.set(group, bindings);
  signal?.addEventListener("abort", () => groups.delete(group));
}

function isTyping(target) {
  if (target.matches("textarea")) return !target.readOnly;
  if (target.matches("input")) return !["checkbox", "radio", "button", "file", "range"].includes(target.type);
  return target.matches("select, [contenteditable]");
}

const combination = (event) =>
  (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + (event.key.length === 1 ? event.key.toLowerCase() : event.key);

function run(event) {
  const target = event.target instanceof Element ? event.target : document.body;
  if (event.defaultPrevented || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
  const pressed = combination(event);
  const isSingle = pressed.length === 1;
  if (isSingle && setting("single-keys") === "off") return;
  for (const binding of [...groups.values()].flat()) {
    if (!binding.keys.includes(pressed)) continue;
    if (isTyping(target) && !binding.inText) continue;
    if (binding.where && !binding.where(target)) continue;
    event.preventDefault();
    binding.run(event);
    return;
  }
}

/** Starts to listen, and makes the dialog that lists the keys. */
export function listenForKeys() {
  document.addEventListener("keydown", run);
  const dialog = document.getElementById("keys-dialog");
  const single = document.getElementById("single-keys");
  const open = () => {
    single.checked = setting("single-keys") !== "off";
    document.getElementById("keys-list").replaceChildren(...ordered().map(
      ([title, bindings]) => listOf(title, bindings),
    ));
    dialog.showModal();
  };
  single.addEventListener("change", () => keepSetting("single-keys", single.checked ? null : "off"));
  document.getElementById("keys-open").addEventListener("click", open);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  bindKeys("Page", [{ keys: ["?"], shown: "?", text: "List the keys", run: open }]);
}

// Those of the view first: they are what one looks for.
const ordered = () => [...groups].sort(([a], [b]) => EVERYWHERE.indexOf(a) - EVERYWHERE.indexOf(b));

function listOf(title, bindings) {
  return el(
    "section",
    {},
    el("h3", { text: title }),
    el("dl", { class: "keys" }, ...bindings.flatMap(({ shown, text }) => [
      el("dt", {}, ...shown.split(" ").flatMap((key, at) => [at ? " " : "", el("kbd", { text: key })])),
      el("dd", { text }),
    ])),
  );
}
