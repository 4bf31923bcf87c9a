// Diagrams of the server as nodes of the page: shapes and texts alone, by lists of what is allowed.

const ELEMENTS = new Set([
  "svg",
  "g",
  "line",
  "rect",
  "circle",
  "polyline",
  "polygon",
  "path",
  "text",
  "tspan",
  "title",
]);
const ATTRIBUTES = new Set([
  "class", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "d", "points", "width", "height", "viewBox",
  "transform", "role", "aria-label", "text-anchor",
]);
const NS = "http://www.w3.org/2000/svg";

/** The drawing of an SVG text, or null where it is none. Everything unknown is left out with all inside of it. */
export function drawing(source) {
  const parsed = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
  // Our diagrams have no namespace of their own when they stand in a page; a parser then reads plain XML.
  return parsed.localName === "svg" ? copy(parsed) : null;
}

function copy(node) {
  const made = document.createElementNS(NS, node.localName);
  for (const { name, value } of node.attributes) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  for (const child of node.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (child.nodeType === Node.ELEMENT_NODE && ELEMENTS.has(child.localName)) made.append(copy(child));
  }
  return made;
}
