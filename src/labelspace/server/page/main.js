// Starts the page: the server, the models, the header, and the view that the address names.

import { api, setKeyDialog } from "./api.js";
import { el } from "./dom.js";
import { askForKey } from "./key_dialog.js";
import { bindKeys, listenForKeys } from "./keys.js";
import { notifyError, sentence } from "./notices.js";
import { store } from "./store.js";
import * as tag from "./tag.js";

// Scripts that the first view does not need are loaded on demand.
const VIEWS = {
  "": { title: "Tag", load: async () => tag },
  review: { title: "Review", load: () => styled(import("./review.js")) },
  batch: { title: "Batch", load: () => styled(import("./batch.js")) },
  model: { title: "Model", load: () => styled(import("./model.js")) },
};
const main = document.getElementById("main");
let leaving = new AbortController();
let style = null;

/** A view with its style, which is in force before the view is shown. */
async function styled(view) {
  style ??= new Promise((resolve, reject) => {
    const onerror = () => reject(new Error("its style could not be loaded"));
    const href = new URL("views.css", import.meta.url).href;
    document.head.append(el("link", { rel: "stylesheet", href, onload: () => resolve(), onerror }));
  });
  await style;
  return view;
}

function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path in VIEWS ? path : "", model: new URLSearchParams(query).get("model") };
}

/** The address of a view; it names the model where there is a choice. */
function hash(view) {
  const query = store.models.length > 1 ? `?model=${encodeURIComponent(store.model.id)}` : "";
  return `#/${view}${query}`;
}

async function route() {
  const { view, model } = address();
  if (model && model !== store.model.id) store.useModel(model);
  setLinks(view);
  leaving.abort();
  const visit = new AbortController();
  leaving = visit;
  document.title = `${VIEWS[view].title} · labelspace`;
  try {
    const module = await VIEWS[view].load();
    if (visit.signal.aborted) return;
    main.className = `view-${view || "tag"}`;
    main.replaceChildren();
    await module.show(main, visit.signal);
  } catch (error) {
    if (!visit.signal.aborted) notifyError(error, `${VIEWS[view].title} could not be shown`);
  }
}

function setLinks(view) {
  for (const link of document.querySelectorAll("#views a")) {
    const name = link.dataset.view;
    link.href = hash(name);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.getElementById("model-menu").value = store.model.id;
}

function fillModelMenu() {
  const menu = document.getElementById("model-menu");
  menu.replaceChildren(...store.models.map((model) => el("option", { value: model.id, text: model.id })));
  menu.value = store.model.id;
  menu.addEventListener("change", () => {
    store.useModel(menu.value);
    history.replaceState(null, "", hash(address().view));
    setLinks(address().view);
  });
  document.getElementById("model-choice").hidden = store.models.length < 2;
  const only = document.getElementById("model-name");
  only.hidden = store.models.length > 1;
  only.textContent = store.model.id;
}

function fail(error) {
  main.replaceChildren(el(
    "div",
    { class: "page-message" },
    el("h1", { text: "The page could not start" }),
    el("p", { text: sentence(error.message) }),
    el("button", { type: "button", class: "button is-main", text: "Try again", onclick: () => location.reload() }),
  ));
}

async function start() {
  setKeyDialog(askForKey);
  listenForKeys();
  const goTo = (view) => () => {
    location.hash = hash(view);
  };
  const views = Object.entries(VIEWS);
  bindKeys(
    "Views",
    views.map(([view, { title }], at) => ({
      keys: [String(at + 1)],
      shown: String(at + 1),
      text: title,
      run: goTo(view),
    })),
  );
  const [server, { models }] = await Promise.all([api.server(), api.models()]);
  if (!models.length) throw new Error("the server has no model");
  store.setServer(server, models);
  store.useModel(address().model);
  fillModelMenu();
  addEventListener("hashchange", route);
  await route();
}

// A file that misses its target must not replace the page.
for (const event of ["dragover", "drop"]) {
  addEventListener(event, (given) => given.dataTransfer?.types.includes("Files") && given.preventDefault());
}

// The address after # names a view, so the link cannot jump by itself.
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

start().catch(fail);
