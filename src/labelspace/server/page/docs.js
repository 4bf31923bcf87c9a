// The reference of the API, made from openapi.json: nothing is loaded from elsewhere.

import { api, base, setKeyDialog } from "./api.js";
import { el } from "./dom.js";
import { askForKey } from "./key_dialog.js";
import { bounds, Description } from "./openapi.js";
import { table } from "./table.js";
import { TryIt } from "./try_it.js";

const DEEPEST = 3; // levels of fields in a table
const FIELDS = { class: "fields" };
const main = document.getElementById("main");

/** A text of the description: paragraphs, and ``code``. */
function prose(text) {
  return (text ?? "").split(/\n\s*\n/).filter(Boolean).map((paragraph) => {
    const node = el("p");
    paragraph.split(/``?([^`]+)``?/).forEach((part, at) => node.append(at % 2 ? el("code", { text: part }) : part));
    return node;
  });
}

function anchor(operation) {
  return operation.operationId ?? `${operation.method}-${operation.path}`.replace(/\W+/g, "-");
}

function fieldRows(description, schema, depth = 0, seen = []) {
  const required = new Set(schema.required ?? []);
  return description.fieldsOf(schema).flatMap(([name, field]) => {
    const own = description.schemaOf(field);
    const inner = description.objectOf(field);
    const isNew = inner && depth < DEEPEST && !seen.includes(inner.title);
    const said = own.description === inner?.description ? "" : own.description;
    const first = el("span", { class: `depth-${depth}` }, el("code", { text: name }));
    if (required.has(name)) first.append(el("small", { text: " required" }));
    const row = [first, el("code", { text: description.typeOf(field) }), about(said, own)];
    return [row, ...(isNew ? fieldRows(description, inner, depth + 1, [...seen, inner.title]) : [])];
  });
}

function about(said, schema) {
  return [...prose(said), el("span", { class: "soft", text: facts(schema) })];
}

function facts(schema) {
  const value = schema.default;
  const initial = value === undefined || value === null ? "" : `default ${JSON.stringify(value)}`;
  return [bounds(schema), initial].filter(Boolean).join("; ");
}

function fieldTable(description, schema) {
  const object = description.objectOf(schema);
  if (!object) return el("p", {}, el("code", { text: description.typeOf(schema) }));
  const isList = description.schemaOf(schema).type === "array";
  return el(
    "div",
    {},
    isList && el("p", { class: "soft", text: "A list; each entry:" }),
    table({ head: ["Field", "Type", ""], rows: fieldRows(description, object), properties: FIELDS }),
  );
}

function parameterTable(description, parameters) {
  const rows = parameters.map((parameter) => {
    const schema = description.schemaOf(parameter.schema);
    const place = ` ${parameter.in}${parameter.required ? ", required" : ""}`;
    return [
      [el("code", { text: parameter.name }), el("small", { text: place })],
      el("code", { text: description.typeOf(parameter.schema) }),
      about(parameter.description ?? schema.description, schema),
    ];
  });
  return table({ head: ["Parameter", "Type", ""], rows, properties: FIELDS });
}

function responses(description, operation) {
  return Object.entries(operation.responses).map(([status, given]) => {
    const response = description.resolve(given);
    const schema = response.content?.["application/json"]?.schema;
    const title = el(
      "summary",
      {},
      el("b", { class: status < "400" ? "is-right" : "wrong", text: status }),
      ` ${response.description ?? ""}`,
    );
    if (!schema || !Object.keys(schema).length) return el("p", { class: "response" }, ...title.childNodes);
    const example = JSON.stringify(description.exampleOf(schema), null, 2);
    return el(
      "details",
      { class: "response" },
      title,
      fieldTable(description, schema),
      el(
        "pre",
        { class: "code", tabindex: "0", role: "group", "aria-label": "Example" },
        el("code", { text: example }),
      ),
    );
  });
}

function section(title, ...content) {
  return el("section", { class: "stack is-tight" }, el("h3", { text: title }), ...content);
}

function operationNode(description, operation, known) {
  const body = el("div", { class: "operation-body" });
  const title = el(
    "summary",
    {},
    el("span", { class: `method is-${operation.method.toLowerCase()}`, text: operation.method }),
    el("code", { class: "operation-path", text: operation.path }),
    el("span", { class: "operation-title", text: operation.summary ?? "" }),
  );
  const node = el("details", { class: "operation", id: anchor(operation), "data-testid": "operation" }, title, body);
  // Forty forms at once would slow the page: each is made when it is opened.
  node.addEventListener("toggle", () => {
    if (node.open && !body.firstChild) body.append(...operationParts(description, operation, known));
  });
  return node;
}

function operationParts(description, operation, known) {
  const parameters = (operation.parameters ?? []).map((one) => description.resolve(one));
  const content = Object.values(operation.requestBody?.content ?? {})[0];
  return [
    ...prose(operation.description),
    ...(parameters.length ? [section("Parameters", parameterTable(description, parameters))] : []),
    ...(content ? [section("Body", fieldTable(description, content.schema))] : []),
    section("Answers", ...responses(description, operation)),
    new TryIt(operation, description, known).node,
  ];
}

function contents(groups) {
  return [...groups.keys()].map((tag) => el("a", { href: `#${groupId(tag)}`, text: title(tag) }));
}

const groupId = (tag) => `group-${tag.replace(/\W+/g, "-")}`;
const title = (tag) => tag.charAt(0).toUpperCase() + tag.slice(1);

function openAddressed() {
  const node = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (node?.matches("details")) node.open = true;
  node?.scrollIntoView();
}

async function firstModel() {
  try {
    return (await api.server()).models[0] ?? "";
  } catch {
    return "";
  }
}

async function start() {
  setKeyDialog(askForKey);
  const response = await fetch(new URL("openapi.json", base));
  if (!response.ok) throw new Error(`openapi.json could not be read: the server answered ${response.status}`);
  const description = new Description(await response.json());
  const { info } = description.document;
  const groups = description.groups();
  const known = { model: await firstModel() };
  document.getElementById("contents").replaceChildren(...contents(groups));
  main.replaceChildren(
    el(
      "header",
      { class: "page-head" },
      el("h1", { text: `${info.title} ${info.version}` }),
      ...prose(info.description),
      el("p", {}, el("a", { href: new URL("openapi.json", base).href, text: "openapi.json" })),
    ),
    ...[...groups].map(([tag, operations]) => {
      const nodes = operations.map((one) => operationNode(description, one, known));
      return el("section", { class: "group", id: groupId(tag) }, el("h2", { text: title(tag) }), ...nodes);
    }),
  );
  addEventListener("hashchange", openAddressed);
  openAddressed();
}

start().catch((error) => main.replaceChildren(el("p", { class: "wrong", role: "alert", text: error.message })));
