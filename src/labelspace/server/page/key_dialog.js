// Asks the user for the key of a server that needs one; it is kept until the tab is closed.

import { el } from "./dom.js";
import { keepSecret } from "./storage.js";

const KEPT = "The operator of the server can give you one. It is kept until you close this tab.";
const input = el("input", { type: "password", id: "key", autocomplete: "off", "data-testid": "key" });
const wrong = el("p", { class: "wrong", id: "key-wrong", role: "alert", hidden: true });
const dialog = el(
  "dialog",
  { id: "key-dialog", class: "dialog is-small", "aria-labelledby": "key-title", "data-testid": "key-dialog" },
  el(
    "form",
    { method: "dialog" },
    el("h2", { id: "key-title", text: "This server needs an API key" }),
    el("p", { class: "soft", text: KEPT }),
    el("label", { for: "key", text: "API key" }),
    input,
    wrong,
    el(
      "p",
      { class: "dialog-foot" },
      el("button", { class: "button is-main", value: "use", text: "Use the key", "data-testid": "key-use" }),
      el("button", { class: "button is-quiet", value: "", text: "Cancel" }),
    ),
  ),
);
let asking = null;

/** Resolves with a key, or null if the user gives none; several requests share one dialog. */
export function askForKey(wasGiven, detail) {
  asking ??= ask(wasGiven, detail).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(wasGiven, detail) {
  if (!dialog.isConnected) document.body.append(dialog);
  if (wasGiven) keepSecret("key", null);
  wrong.hidden = !wasGiven;
  wrong.textContent = wasGiven ? `This key was not accepted: ${detail}` : "";
  input.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const close = () => resolve(dialog.returnValue === "use" ? input.value.trim() || null : null);
    dialog.addEventListener("close", close, { once: true });
  });
}
