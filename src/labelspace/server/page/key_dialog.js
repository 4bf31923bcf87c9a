// Asks the user for the key of a server that needs one; it is kept until the tab is closed.

import { keepSecret } from "./storage.js";

let asking = null;

/** Resolves with a key, or null if the user gives none; several requests share one dialog. */
export function askForKey(wasGiven, detail) {
  asking ??= ask(wasGiven, detail).finally(() => {
    asking = null;
  });
  return asking;
}

function ask(wasGiven, detail) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key");
  const said = document.getElementById("key-wrong");
  if (wasGiven) keepSecret("key", null);
  said.hidden = !wasGiven;
  said.textContent = wasGiven ? `This key was not accepted: ${detail}` : "";
  input.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const close = () => resolve(dialog.returnValue === "use" ? input.value.trim() || null : null);
    dialog.addEventListener("close", close, { once: true });
  });
}
