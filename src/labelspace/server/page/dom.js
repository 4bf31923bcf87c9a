// Elements without innerHTML: names and texts come from files and requests, and are never read as HTML.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "readOnly", "selected", "open", "tabIndex"]);

/**
 * Makes an element. Properties: `onclick`-like functions are listeners, `text` is the text, others are attributes;
 * null, undefined and false leave an attribute out.
 * @param {string} tag
 * @param {Object<string, any>} [properties]
 * @param {...(Node|string|null|undefined|false)} children
 */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) setProperty(node, name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setProperty(node, name, value) {
  if (typeof value === "function") node.addEventListener(name.slice(2), value);
  else if (PROPERTIES.has(name)) node[name] = value;
  else if (value === null || value === undefined || value === false) return;
  else if (name === "text") node.textContent = value;
  else node.setAttribute(name, value === true ? "" : String(value));
}

// Overrides, embeddings and isolates can make a name look like a different name; control characters break lines.
const DIRECTION = /[\u202a-\u202e\u2066-\u2069]/g;
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;

/** A name as it may be shown: one line, and nothing that turns the direction of what follows. */
export const shown = (text) => String(text).replace(DIRECTION, "").replace(CONTROL, " ");

/** A name in an element of its own direction, so that it cannot reorder the text around it. */
export const name = (text, properties = {}) => el("bdi", { ...properties, text: shown(text) });

const TOOLTIP = 300; // characters: a longer text would cover the page

/** A text for a tooltip, cut if it is long; empty if there is none. */
export function tooltip(text) {
  const line = shown(text ?? "");
  return line.length > TOOLTIP ? `${line.slice(0, TOOLTIP)}…` : line;
}

/** The way down to a label: "food › bread". */
export function pathText(path) {
  return path.map(shown).join(" › ");
}

export function pathNode(path) {
  const node = el("span", { class: "path" });
  path.forEach((step, at) => {
    if (at) node.append(el("span", { class: "path-sign", text: " › " }));
    node.append(name(step));
  });
  return node;
}

/** A bar of a share between 0 and 1; the number next to it says the same to screen readers. */
export function gauge(share, kind = "") {
  const fill = el("span", { class: "gauge-fill" });
  setGauge(fill, share);
  return el("span", { class: `gauge ${kind}`, "aria-hidden": "true" }, fill);
}

export function setGauge(fill, share) {
  fill.style.width = `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(1)}%`;
}

/** A button with an optional key that does the same. */
export function button(text, properties = {}, key = null) {
  const node = el("button", { type: "button", class: "button", ...properties }, text);
  if (key) node.append(el("kbd", { text: key, "aria-hidden": "true" }));
  return node;
}

let serial = 0;
/** An id that no other element has. */
export const uniqueId = (prefix) => `${prefix}-${(serial += 1)}`;
