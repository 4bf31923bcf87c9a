// What is known of a label: in the panel, and at the pointer.

const LINKS_LISTED = 8, NEAREST = 8;

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

const number = (value) => value.toLocaleString("en");
const documents = (i) => (known ? `${number(counts[i])} document${counts[i] === 1 ? "" : "s"}, ` : "");
const described = (i) => `${documents(i)}norm ${norm[i] > 0.999 ? norm[i].toFixed(6) : norm[i].toFixed(3)}`;

function linked(own, other) {
  const lists = new Map();
  own.forEach((i, e) => (lists.has(i) ? lists.get(i).push(other[e]) : lists.set(i, [other[e]])));
  for (const list of lists.values()) list.sort((i, j) => counts[j] - counts[i]);
  return (i) => lists.get(i) || [];
}

const above = linked(child, parent), below = linked(parent, child);

function nearest(i) {
  const away = Float64Array.from(x, (_, j) => Disk.distance(x[i], y[i], gap[i], x[j], y[j], gap[j]));
  const near = [];
  for (let j = 0; j < n; j++) {
    if (j === i || (near.length === NEAREST && away[j] >= away[near[NEAREST - 1]])) continue;
    let place = near.length;
    while (place > 0 && away[near[place - 1]] > away[j]) place--;
    near.splice(place, 0, j);
    near.length = Math.min(near.length, NEAREST);
  }
  return near.map((j) => [j, away[j].toFixed(2)]);
}

function entry(i, note) {
  const item = element("li"), button = element("button");
  button.type = "button";
  button.title = data.names[i];
  button.append(element("bdi", data.names[i]), element("small", note));
  button.addEventListener("click", () => goTo(i));
  button.addEventListener("mouseenter", () => point(i));
  button.addEventListener("mouseleave", () => point(-1));
  item.append(button);
  return item;
}

function listing(title, entries, className) {
  const section = element("section", undefined, className), list = element("ul");
  const add = (some) => list.append(...some.map(([i, note]) => entry(i, note)));
  add(entries.slice(0, LINKS_LISTED));
  section.append(element("h3", title), list);
  if (entries.length > LINKS_LISTED) {
    const more = element("button", `and ${number(entries.length - LINKS_LISTED)} more`, "more");
    more.type = "button";
    more.addEventListener("click", () => {
      add(entries.slice(LINKS_LISTED));
      more.remove();
    });
    section.append(more);
  }
  return section;
}

function choose(i) {
  seen.chosen = i;
  at("help").hidden = i >= 0;
  at("label").replaceChildren();
  if (i >= 0) {
    const heading = element("h2");
    heading.append(element("bdi", data.names[i]));
    at("label").append(heading, element("p", described(i)));
    const counted = (list) => list.map((j) => [j, known ? number(counts[j]) : ""]);
    const up = above(i), down = below(i);
    if (up.length) at("label").append(listing(up.length > 1 ? "Parents" : "Parent", counted(up), "parents"));
    if (down.length) at("label").append(listing(`Children (${number(down.length)})`, counted(down), "children"));
    if (n > 1) at("label").append(listing("Nearest on the disk", nearest(i), "nearest"));
  }
  drawChart();
  redraw();
}

function point(i) {
  if (seen.hover === i) return;
  seen.hover = i;
  canvas.classList.toggle("over", i >= 0);
  redraw();
}

function labelAt(px, py) {
  let best = -1, least = Infinity;
  for (let i = 0; i < n; i++) {
    const dx = sx[i] - px, dy = sy[i] - py, away = Math.sqrt(dx * dx + dy * dy) - size[i];
    if (away < 6 && away < least) {
      least = away;
      best = i;
    }
  }
  return best;
}

function tell(i, px, py) {
  const tip = at("tip");
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.replaceChildren(element("bdi", data.names[i]), element("small", described(i)));
  const left = Math.max(0, Math.min(px + 14, view.width - tip.offsetWidth - 4));
  const top = py + 18 + tip.offsetHeight > view.height ? py - tip.offsetHeight - 10 : py + 18;
  tip.style.transform = `translate(${left}px, ${top}px)`;
}
