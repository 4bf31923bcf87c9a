// Details of a label: in the panel, and in the tooltip at the pointer.

const MAX_LINKS = 8, MAX_NEAREST = 8;

function element(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

const number = (value) => value.toLocaleString("en");
const documents = (i) => (hasCounts ? `${number(counts[i])} document${counts[i] === 1 ? "" : "s"}, ` : "");
const description = (i) => `${documents(i)}norm ${norm[i] > 0.999 ? norm[i].toFixed(6) : norm[i].toFixed(3)}`;

function adjacency(from, to) {
  const lists = new Map();
  from.forEach((i, e) => (lists.has(i) ? lists.get(i).push(to[e]) : lists.set(i, [to[e]])));
  for (const list of lists.values()) list.sort((i, j) => counts[j] - counts[i]);
  return (i) => lists.get(i) || [];
}

const parentsOf = adjacency(child, parent), childrenOf = adjacency(parent, child);

function nearest(i) {
  const distance = Float64Array.from(x, (_, j) => Disk.distance(x[i], y[i], gap[i], x[j], y[j], gap[j]));
  const neighbors = [];
  for (let j = 0; j < n; j++) {
    if (j === i || (neighbors.length === MAX_NEAREST && distance[j] >= distance[neighbors[MAX_NEAREST - 1]])) continue;
    let rank = neighbors.length;
    while (rank > 0 && distance[neighbors[rank - 1]] > distance[j]) rank--;
    neighbors.splice(rank, 0, j);
    neighbors.length = Math.min(neighbors.length, MAX_NEAREST);
  }
  return neighbors.map((j) => [j, distance[j].toFixed(2)]);
}

function entry(i, note) {
  const item = element("li"), button = element("button");
  button.type = "button";
  button.title = data.names[i];
  button.append(element("bdi", data.names[i]), element("small", note));
  button.addEventListener("click", () => goTo(i));
  button.addEventListener("mouseenter", () => setHover(i));
  button.addEventListener("mouseleave", () => setHover(-1));
  item.append(button);
  return item;
}

function listing(title, entries, className) {
  const section = element("section", undefined, className), list = element("ul");
  const add = (items) => list.append(...items.map(([i, note]) => entry(i, note)));
  add(entries.slice(0, MAX_LINKS));
  section.append(element("h3", title), list);
  if (entries.length > MAX_LINKS) {
    const more = element("button", `and ${number(entries.length - MAX_LINKS)} more`, "more");
    more.type = "button";
    more.addEventListener("click", () => {
      add(entries.slice(MAX_LINKS));
      more.remove();
    });
    section.append(more);
  }
  return section;
}

function select(i) {
  state.selected = i;
  byId("help").hidden = i >= 0;
  byId("label").replaceChildren();
  if (i >= 0) {
    const heading = element("h2");
    heading.append(element("bdi", data.names[i]));
    byId("label").append(heading, element("p", description(i)));
    const withCounts = (list) => list.map((j) => [j, hasCounts ? number(counts[j]) : ""]);
    const parents = parentsOf(i), children = childrenOf(i);
    const up = parents.length > 1 ? "Parents" : "Parent", down = `Children (${number(children.length)})`;
    if (parents.length) byId("label").append(listing(up, withCounts(parents), "parents"));
    if (children.length) byId("label").append(listing(down, withCounts(children), "children"));
    if (n > 1) byId("label").append(listing("Nearest on the disk", nearest(i), "nearest"));
  }
  drawChart();
  redraw();
}

function setHover(i) {
  if (state.hover === i) return;
  state.hover = i;
  canvas.classList.toggle("over", i >= 0);
  redraw();
}

function labelAt(px, py) {
  let best = -1, minDistance = Infinity;
  for (let i = 0; i < n; i++) {
    const dx = sx[i] - px, dy = sy[i] - py, distance = Math.sqrt(dx * dx + dy * dy) - size[i];
    if (distance < 6 && distance < minDistance) {
      minDistance = distance;
      best = i;
    }
  }
  return best;
}

function showTooltip(i, px, py) {
  const tooltip = byId("tooltip");
  tooltip.hidden = i < 0;
  if (i < 0) return;
  tooltip.replaceChildren(element("bdi", data.names[i]), element("small", description(i)));
  const left = Math.max(0, Math.min(px + 14, view.width - tooltip.offsetWidth - 4));
  const top = py + 18 + tooltip.offsetHeight > view.height ? py - tooltip.offsetHeight - 10 : py + 18;
  tooltip.style.transform = `translate(${left}px, ${top}px)`;
}
