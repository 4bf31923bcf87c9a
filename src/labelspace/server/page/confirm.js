// Asks whether something is to be done: a dialog with two answers.

import { el, uniqueId } from "./dom.js";

/**
 * Resolves with whether the user agrees; Escape is a no.
 * @param {{title: string|Node, text: string, action: string}} question
 */
export function confirmed({ title, text, action }) {
  const id = uniqueId("confirm");
  const dialog = el(
    "dialog",
    { class: "dialog is-small", "aria-labelledby": id, "data-testid": "confirm" },
    el(
      "form",
      { method: "dialog" },
      el("h2", { id }, title),
      el("p", { class: "soft", text }),
      el(
        "p",
        { class: "dialog-foot" },
        el("button", { class: "button is-main", value: "yes", text: action, "data-testid": "confirm-yes" }),
        el("button", { class: "button is-quiet", value: "", text: "Cancel", "data-testid": "confirm-no" }),
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    }, { once: true });
  });
}
