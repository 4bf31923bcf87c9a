// Labels found by a part of their name.

const HITS_LISTED = 100;

// Small letters without accents.
const plain = (name) => name.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase();
let plainNames = null;

function search() {
  const wanted = plain(at("search").value.trim());
  plainNames = plainNames || data.names.map(plain);
  for (const i of seen.hits) isHit[i] = 0;
  seen.hits = [];
  if (wanted) for (const i of order) if (plainNames[i].includes(wanted)) seen.hits.push(i);
  for (const i of seen.hits) isHit[i] = 1;
  seen.active = 0;
  const found = seen.hits.length, more = found > HITS_LISTED ? `, the first ${HITS_LISTED} listed` : "";
  at("found").textContent = wanted ? `${number(found)} label${found === 1 ? "" : "s"}${more}` : "";
  at("hits").replaceChildren(...seen.hits.slice(0, HITS_LISTED).map((i) => entry(i, known ? number(counts[i]) : "")));
  activate(0);
  redraw();
}

function activate(place) {
  const items = at("hits").children;
  if (!items.length) return;
  items[seen.active]?.classList.remove("active");
  seen.active = (place + items.length) % items.length;
  items[seen.active].classList.add("active");
  items[seen.active].scrollIntoView({ block: "nearest" });
}

function searchKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) activate(seen.active + step);
  else if (event.key === "Enter" && seen.hits.length) goTo(seen.hits[seen.active]);
  else if (event.key === "Escape") {
    at("search").value = "";
    search();
  } else return;
  event.preventDefault();
}
