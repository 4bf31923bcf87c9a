"use strict";
// Sorts the table, chooses what plots show, and marks a method in all of them. Positions were computed with the page.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.documentElement.classList.add("scripted");

  // A click on a heading sorts: the best first, then the other way round.
  for (const table of all("table.sortable")) {
    const headings = all("thead th", table), body = table.tBodies[0];
    headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
      const first = column === 0 || heading.classList.contains("cost") ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = heading.getAttribute("aria-sort") === first ? other : first;
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1, rows = all("tr:not(.last)", body), last = all("tr.last", body);
      const key = (row) => (column ? parseFloat(row.cells[column].dataset.value) : row.cells[0].textContent);
      const compare = (a, b) => (column ? a - b : a.localeCompare(b));
      const known = rows.filter((row) => !Number.isNaN(key(row)) || !column);
      known.sort((a, b) => sign * compare(key(a), key(b)));
      body.append(...known, ...rows.filter((row) => !known.includes(row)), ...last);
    }));
  }

  // A table fades at the right while there is more of it.
  for (const wide of all(".wide")) {
    const fade = () => wide.classList.toggle("more", wide.scrollLeft + wide.clientWidth < wide.scrollWidth - 2);
    wide.addEventListener("scroll", fade, { passive: true });
    new ResizeObserver(fade).observe(wide);
  }

  // A list that shows one of several blocks.
  for (const list of all("select[data-shows]")) {
    const show = () => all(`[data-block="${list.dataset.shows}"]`).forEach((block) => {
      block.hidden = block.dataset.key !== list.value;
    });
    list.addEventListener("change", show);
    show();
  }

  const set = (node, values) => Object.entries(values).forEach(([key, value]) => node.setAttribute(key, value));
  const make = (tag, values, said) => {
    const node = document.createElementNS(SVG, tag);
    set(node, values);
    if (said !== undefined) node.textContent = said;
    return node;
  };
  const EDGE = 8, HEIGHT = 340;
  const pixel = (percent) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * percent) / 100;

  function drawTradeOff(frame, metric, cost) {
    const y = data.y[metric], x = data.x[cost], filled = data.filled[`${metric}|${cost}`];
    frame.querySelector(".y-title").textContent = y.name;
    frame.querySelector(".x-title").textContent = x.name;
    frame.setAttribute("aria-label", `${y.name} against ${x.name} of each method`);
    const line = (x1, y1, x2, y2) => make("line", { class: "grid", x1: `${x1}%`, y1, x2: `${x2}%`, y2 });
    frame.querySelector(".ticks").replaceChildren(
      ...y.ticks.map(([at]) => line(0, pixel(at), 100, pixel(at))), ...x.ticks.map(([at]) => line(at, 0, at, HEIGHT)));
    frame.querySelector(".y-axis").replaceChildren(
      ...y.ticks.map(([at, said]) => make("text", { class: "tick end", x: "100%", y: pixel(at) + 4 }, said)));
    frame.querySelector(".x-axis").replaceChildren(
      ...x.ticks.map(([at, said]) => make("text", { class: "tick middle", x: `${at}%`, y: 16 }, said)));
    for (const group of all(".area .method", frame)) {
      const i = group.dataset.method, at = `${x.at[i]}%`, [low, high] = y.bounds[i].length ? y.bounds[i] : [y.at[i], y.at[i]];
      set(group.querySelector(".leader"), { x1: at, y1: y.at[i], y2: y.heights[i] });
      set(group.querySelector(".interval"), { x1: at, x2: at, y1: low, y2: high });
      set(group.querySelector(".point"), { cx: at, cy: y.at[i], class: filled[i] ? "point filled" : "point" });
    }
    for (const group of all(".names .method", frame)) {
      const i = group.dataset.method, name = group.querySelector("text");
      name.setAttribute("y", y.heights[i] + 4);
      name.textContent = y.names[i];
    }
  }

  const frame = document.querySelector(".frame.trade-off");
  if (frame) {
    const lists = ["y", "x"].map((axis) => document.getElementById(`trade-off-${axis}`));
    const draw = () => drawTradeOff(frame, ...lists.map((list) => list.value));
    lists.forEach((list) => list.addEventListener("change", draw));
    draw(); // a browser may have kept another choice
  }

  // The pointer on a method marks it everywhere.
  const mark = (index) => {
    document.body.classList.toggle("any-hot", index !== undefined);
    all(".method").forEach((node) => node.classList.toggle("hot", node.dataset.method === index));
  };
  document.addEventListener("pointerover", (event) => mark(event.target.closest?.(".method")?.dataset.method));
  document.documentElement.addEventListener("pointerleave", () => mark(undefined));
})();
