// "Try it": a form for an operation that sends a real request, and the same request as a line for curl.

import { base, headers } from "./api.js";
import { button, el } from "./dom.js";
import { copyText } from "./download.js";
import { bytes, milliseconds } from "./format.js";
import { askForKey } from "./key_dialog.js";
import { keepSecret, secret } from "./storage.js";

const LONGEST = 200_000; // characters of an answer that are shown
const JSON_TYPE = "application/json";
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export class TryIt {
  /**
   * @param {Object} operation
   * @param {import("./openapi.js").Description} description
   * @param {{model: string}} known
   */
  constructor(operation, description, known) {
    Object.assign(this, { operation, description });
    const parameters = (operation.parameters ?? []).map(
      (one) => description.resolve(one),
    ).filter((one) => one.in !== "header");
    this.fields = parameters.map((parameter) => this.#field(parameter, known));
    this.body = this.#body();
    this.curl = el("code");
    this.answer = el("div", { class: "answer", "data-testid": "try-answer" });
    this.send = el("button", { class: "button is-main", "data-testid": "try-send", text: "Send" });
    const copy = button("Copy curl", {
      class: "button is-quiet",
      onclick: () => copyText(this.curl.textContent).catch(() => {}),
    });
    this.node = el(
      "form",
      { class: "try", onsubmit: (event) => (event.preventDefault(), this.run()), oninput: () => this.#showCurl() },
      el("h3", { text: "Try it" }),
      this.fields.length > 0 && el("div", { class: "try-fields" }, ...this.fields.map((field) => field.node)),
      this.body?.node,
      el(
        "pre",
        { class: "code", tabindex: "0", role: "group", "aria-label": "The request as a line for curl" },
        this.curl,
      ),
      el("div", { class: "row" }, this.send, copy),
      this.answer,
    );
    this.#showCurl();
  }

  #field(parameter, known) {
    const schema = this.description.schemaOf(parameter.schema);
    const isModel = parameter.in === "path" && ["model", "project", "m"].includes(parameter.name);
    const first = isModel ? known.model : (parameter.example ?? schema.default ?? "");
    const value = first === null || Array.isArray(first) ? "" : String(first);
    const input = el("input", { type: "text", value, required: Boolean(parameter.required), autocomplete: "off" });
    return {
      parameter,
      input,
      node: el(
        "label",
        {},
        el("span", {}, parameter.name, parameter.required && el("small", { text: " required" })),
        input,
      ),
    };
  }

  #body() {
    const [type, media] = Object.entries(this.operation.requestBody?.content ?? {})[0] ?? [];
    if (!type) return null;
    const given = media.example ?? Object.values(media.examples ?? {})[0]?.value;
    const example = given ?? this.description.requestExample(media.schema);
    const isJson = type === JSON_TYPE;
    const value = isJson ? JSON.stringify(example, null, 2) : new URLSearchParams(
      Object.entries(example ?? {}).filter(([, one]) => one !== null),
    ).toString();
    const area = el("textarea", {
      class: "field",
      rows: Math.min(14, value.split("\n").length + 1),
      spellcheck: "false",
      value,
    });
    return {
      type,
      area,
      node: el("label", { class: "try-body" }, el("span", { text: isJson ? "Body, JSON" : `Body, ${type}` }), area),
    };
  }

  #url() {
    const value = (name) => encodeURIComponent(this.fields.find(
      (field) => field.parameter.name === name,
    )?.input.value ?? "");
    const url = new URL(
      this.operation.path.replace(/^\//, "").replace(/\{([^}:]+)[^}]*\}/g, (_, name) => value(name)),
      base,
    );
    for (const { parameter, input } of this.fields) {
      if (parameter.in === "query" && input.value) url.searchParams.append(parameter.name, input.value);
    }
    return url;
  }

  #headers() {
    return { ...headers(false), ...(this.body ? { "Content-Type": this.body.type } : {}) };
  }

  #showCurl() {
    const { method } = this.operation;
    // The key itself stays out of what is shown and copied.
    const sent = Object.entries(this.#headers()).map(
      ([name, value]) => ` -H ${quoted(`${name}: ${name === "Authorization" ? "Bearer KEY" : value}`)}`,
    );
    const body = this.body ? ` -d ${quoted(this.body.area.value)}` : "";
    const verb = method === "GET" ? "" : ` -X ${method}`;
    this.curl.textContent = `curl -s${verb} ${quoted(this.#url().href)}${sent.join("")}${body}`;
  }

  async run() {
    this.send.disabled = true;
    const started = performance.now();
    try {
      const options = { method: this.operation.method, headers: this.#headers(), body: this.body?.area.value };
      const response = await fetch(this.#url(), options);
      await this.#show(response, performance.now() - started);
      if (response.status === 401) await this.#askAndRetry();
    } catch {
      this.answer.replaceChildren(el("p", { class: "wrong", role: "alert", text: "The server does not answer." }));
    }
    this.send.disabled = false;
  }

  async #askAndRetry() {
    const key = await askForKey(Boolean(secret("key")), "send a different one");
    if (!key) return;
    keepSecret("key", key);
    this.#showCurl();
    await this.run();
  }

  async #show(response, elapsed) {
    const text = await response.text();
    const status = `${response.status} ${response.statusText}`.trim();
    const said = `${milliseconds(elapsed)}, ${bytes(new Blob([text]).size)}`;
    this.answer.replaceChildren(
      el(
        "p",
        { role: "status" },
        el("b", { class: response.ok ? "is-right" : "wrong", text: status }),
        el("span", { class: "soft", text: ` ${said}` }),
      ),
      el(
        "pre",
        { class: "code", tabindex: "0", role: "group", "aria-label": "Answer" },
        el("code", { text: indented(text).slice(0, LONGEST) }),
      ),
    );
  }
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
