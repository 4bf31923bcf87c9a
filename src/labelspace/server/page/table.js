// A table of texts and nodes; it scrolls where the page is narrow.

import { el } from "./dom.js";

const cell = (content, properties) => el("td", properties, ...[content].flat());

/**
 * @param {{head: string[], rows: Array<Array<string|Node|Node[]>>, areNumbers?: boolean, properties?: Object}} options
 * The first cell of a row names it; `areNumbers` aligns the others to the right. An empty heading is no heading.
 */
export function table({ head, rows, areNumbers = false, properties = {} }) {
  const kind = areNumbers ? { class: "number" } : {};
  const heading = (text, at) => (text ? el("th", { scope: "col", ...(at ? kind : {}), text }) : el("td"));
  const row = ([first, ...cells]) =>
    el("tr", {}, el("th", { scope: "row" }, ...[first].flat()), ...cells.map((content) => cell(content, kind)));
  return el(
    "div",
    { class: "wide", tabindex: "0", role: "group", "aria-label": head.find(Boolean) },
    el("table", properties, el("thead", {}, el("tr", {}, ...head.map(heading))), el("tbody", {}, ...rows.map(row))),
  );
}
