// Search for labels by a part of their name.

const MAX_HITS = 100;

// Lower case without accents.
const normalized = (name) => name.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase();
let normalizedNames = null;

function search() {
  const query = normalized(byId("search").value.trim());
  normalizedNames = normalizedNames || data.names.map(normalized);
  for (const i of state.hits) isHit[i] = 0;
  state.hits = [];
  if (query) for (const i of order) if (normalizedNames[i].includes(query)) state.hits.push(i);
  for (const i of state.hits) isHit[i] = 1;
  state.active = 0;
  const nHits = state.hits.length, more = nHits > MAX_HITS ? `, the first ${MAX_HITS} shown` : "";
  byId("hit-count").textContent = query ? `${number(nHits)} label${nHits === 1 ? "" : "s"}${more}` : "";
  const shown = state.hits.slice(0, MAX_HITS);
  byId("hits").replaceChildren(...shown.map((i) => entry(i, hasCounts ? number(counts[i]) : "")));
  activate(0);
  redraw();
}

function activate(index) {
  const items = byId("hits").children;
  if (!items.length) return;
  items[state.active]?.classList.remove("active");
  state.active = (index + items.length) % items.length;
  items[state.active].classList.add("active");
  items[state.active].scrollIntoView({ block: "nearest" });
}

function searchKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) activate(state.active + step);
  else if (event.key === "Enter" && state.hits.length) goTo(state.hits[state.active]);
  else if (event.key === "Escape") {
    byId("search").value = "";
    search();
  } else return;
  event.preventDefault();
}
