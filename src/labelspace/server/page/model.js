// Model: what it is, how good it is, what it learned from people, and how to call it from other programs.

import { api, base } from "./api.js";
import { button, el, name } from "./dom.js";
import { copyText, download } from "./download.js";
import { figuresPart } from "./figures.js";
import { bytes, count, date, plural } from "./format.js";
import { LabelEditor } from "./label_editor.js";
import { Learning } from "./learning.js";
import { notify, notifyError } from "./notices.js";
import { store } from "./store.js";
import { Versions } from "./versions.js";

const RUNNING_PAUSE = 3000; // milliseconds between questions for figures that are being measured

export async function show(main, signal) {
  const page = el("div", { class: "page" });
  main.append(page);
  const fill = () => fillPage(page, signal).catch((error) => !signal.aborted && notifyError(
    error,
    "The model could not be read",
  ));
  store.on("model", fill, signal);
  await fill();
}

/** `part`: what was used last; it keeps the focus. */
async function fillPage(page, signal, part = null) {
  const id = store.model.id;
  const model = await api.model(id);
  if (signal.aborted || id !== store.model.id) return;
  store.updateModel(model);
  const figures = el(
    "section",
    { class: "part", "aria-label": "Figures" },
    el("h2", { text: "How good it is" }),
    el("p", { class: "soft", text: "…" }),
  );
  const onNewModel = (part) => fillPage(page, signal, part);
  page.replaceChildren(
    el(
      "header",
      { class: "page-head" },
      el("h1", {}, name(model.id)),
      el("p", { class: "soft", text: sentenceOf(model) }),
    ),
    facts(model),
    figures,
    new Learning(model, signal, onNewModel).node,
    new Versions(model, signal, onNewModel).node,
    ...(store.readOnly ? [] : [new LabelEditor(model, signal, onNewModel).node]),
    ...(model.has_map ? [map(model)] : []),
    apiPart(model),
  );
  page.querySelector(`[data-testid="${part}"]`)?.focus();
  await fillFigures(figures, model, signal);
}

const sentenceOf = (model) => `${model.method}: ${model.title}`;

function facts(model) {
  const members = model.members.map(({ method, view }) => (view ? `${method} (${view})` : method));
  const listed = [
    ["Labels", count(model.n_labels)],
    ["Training documents", count(model.n_documents)],
    ["Members", members.join(", ") || "none: a single method"],
    ["Hierarchy", model.has_hierarchy ? "yes" : "no"],
    ["Probabilities", model.calibrated ? "calibrated" : "no: scores only rank labels"],
    ["Explanations", model.explains ? "yes" : "no"],
    ["Version", model.version],
    ["Trained", date(model.created)],
    ["Size", bytes(model.size_bytes)],
    ["labelspace", model.labelspace_version],
  ];
  return el(
    "dl",
    { class: "fact-list", "data-testid": "facts" },
    ...listed.map(([term, text]) => el("div", {}, el("dt", { text: term }), el("dd", { text }))),
  );
}

async function fillFigures(part, model, signal) {
  const title = part.firstChild;
  try {
    const answer = await api.figures(model.id);
    if (signal.aborted) return;
    if (answer.state === "running") {
      const said = el("p", { class: "soft", role: "status", text: "The figures are being measured …" });
      part.replaceChildren(title, said);
      setTimeout(() => !signal.aborted && part.isConnected && fillFigures(part, model, signal), RUNNING_PAUSE);
    } else part.replaceChildren(title, ...figuresPart(answer));
  } catch (error) {
    const isMissing = error.status === 404;
    const hint = "No figures: start the server with --data and test documents to measure them.";
    const said = isMissing ? hint : `The figures could not be read: ${error.message}.`;
    part.replaceChildren(title, el("p", { class: isMissing ? "soft" : "wrong", text: said }));
  }
}

// A frame cannot send a key, so with keys the map comes as a file.
function map(model) {
  const title = el("h2", { text: "Map of the labels" });
  if (store.server.authentication === "none") {
    return el(
      "section",
      { class: "part" },
      title,
      el("iframe", { class: "map", src: api.mapUrl(model.id), title: "Map of the labels", loading: "lazy" }),
    );
  }
  const save = async () => {
    const response = await api.mapPage(model.id);
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    download(`${model.id}-map.html`, await response.text(), "text/html");
  };
  const offer = button("Download the map", {
    onclick: () => save().catch((error) => notifyError(error, "The map could not be read")),
  });
  return el(
    "section",
    { class: "part" },
    title,
    el("p", { class: "soft", text: "The map opens as a page of its own." }),
    el("div", { class: "row" }, offer),
  );
}

function apiPart(model) {
  const url = new URL(`v1/models/${encodeURIComponent(model.id)}/suggest`, base).href;
  const key = store.server.authentication === "key" ? " -H 'Authorization: Bearer KEY'" : "";
  const type = "-H 'Content-Type: application/json'";
  const line = `curl -s '${url.replaceAll("'", "%27")}'${key} ${type} -d '{"text": "...", "k": 5}'`;
  const { max_documents: most, max_body_bytes: largest } = store.server.limits;
  const copy = async () => {
    await copyText(line);
    notify("Copied.");
  };
  return el(
    "section",
    { class: "part", "aria-label": "API" },
    el("h2", { text: "API" }),
    el(
      "p",
      {},
      "Everything on this page goes through the API. ",
      el("a", { href: new URL("docs", base).href, text: "API reference", "data-testid": "docs-link" }),
    ),
    el(
      "pre",
      { class: "code", tabindex: "0", role: "group", "aria-label": "Example of a request" },
      el("code", { text: line }),
    ),
    el("div", { class: "row" }, button("Copy", {
      class: "button is-quiet",
      onclick: () => copy().catch((error) => notifyError(error)),
    }),
      el("span", { class: "soft", text: `At most ${plural(most, "document")} and ${bytes(largest)} a request.` })),
  );
}
