// Notices at the edge of the page: they report what happened and never block.

import { el } from "./dom.js";
import { icon } from "./icons.js";

const SHOWN_FOR = 8000; // milliseconds; errors stay until they are closed

/**
 * @param {string} text
 * @param {{isError?: boolean, action?: {text: string, run: () => void}}} [options]
 */
export function notify(text, { isError = false, action = null } = {}) {
  const close = () => node.remove();
  const node = el(
    "div",
    { class: `notice${isError ? " is-error" : ""}`, "data-testid": "notice", role: isError && "alert" },
    el("p", { text }),
    action && el("button", {
      type: "button",
      class: "link",
      text: action.text,
      onclick: () => (close(), action.run()),
    }),
    el("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: close }, icon("reject")),
  );
  const region = document.getElementById("notices");
  const same = [...region.children].find((other) => other.firstChild.textContent === text);
  same?.remove(); // a failure that repeats is said once
  region.append(node);
  if (!isError) setTimeout(() => waitUntilUnused(node, close), SHOWN_FOR);
  return close;
}

// A notice stays while the user reads it or is about to act on it.
function waitUntilUnused(node, close) {
  if (node.matches(":hover, :focus-within")) setTimeout(() => waitUntilUnused(node, close), 1000);
  else close();
}

/** Shows an error; a cancelled request is no error. */
export function notifyError(error, what = "") {
  if (error?.name === "AbortError") return;
  const said = error?.message || String(error);
  notify(what ? `${what}: ${ended(said)}` : sentence(said), { isError: true });
}

/** A detail of the server as a sentence. */
export function sentence(text) {
  return ended(text.charAt(0).toUpperCase() + text.slice(1));
}

/** A text that ends with a period; its first letter stays, since its case may matter, as in nDCG. */
export const ended = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
