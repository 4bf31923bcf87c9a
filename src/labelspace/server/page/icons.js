// Icons as SVG nodes, drawn on a grid of 16: no font and no image to load.

const NS = "http://www.w3.org/2000/svg";
const PATHS = {
  accept: "M3 8.5l3.2 3.2L13 4.8",
  reject: "M4 4l8 8M12 4l-8 8",
  add: "M8 3v10M3 8h10",
  chevron: "M6 3.5L10.5 8 6 12.5",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  download: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  search: "M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.5 10.5l3 3",
  undo: "M5.5 3L2.5 6l3 3M2.5 6h7a4 4 0 010 8H7",
  file: "M4 1.8h5l3 3v9.4H4zM9 1.8v3h3",
  external: "M6 3.5H3v9.5h9.5V10M9 2.5h4.5V7M13.5 2.5L7.5 8.5",
};

/** An icon, hidden from screen readers: what holds it has a name. */
export function icon(name) {
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(NS, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
