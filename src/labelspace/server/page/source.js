// A control that takes a file of documents: drop it or choose it, then choose the columns of text and id.

import { chooseColumns, documentOf } from "./columns.js";
import { el, name } from "./dom.js";
import { bytes } from "./format.js";
import { icon } from "./icons.js";
import { notifyError } from "./notices.js";
import { inspect, records } from "./readers.js";

const SAMPLE = 50; // rows that are looked at
const KINDS = { table: "table", jsonl: "JSON lines", lines: "plain text, a document per line" };
const encoder = new TextEncoder();
const SIGNS = { ",": "commas", ";": "semicolons", "\t": "tabs" };

export class FileSource {
  /** @param {{onChange: () => void}} options */
  constructor({ onChange }) {
    this.onChange = onChange;
    this.file = null;
    this.sample = [];
    this.input = el("input", {
      type: "file",
      id: "file",
      class: "visually-hidden",
      accept: ".csv,.tsv,.jsonl,.ndjson,.json,.txt,.gz",
      "data-testid": "file",
      onchange: () => this.take(this.input.files[0]),
    });
    this.choose = el("b", { text: "Choose a file" });
    this.drop = el(
      "label",
      { for: "file", class: "drop", "data-testid": "drop" },
      icon("file"),
      el("span", {}, this.choose, " or drop it here"),
      el("small", { text: "CSV, TSV, JSON lines or plain text (a document per line); also compressed as .gz" }),
    );
    this.about = el("div", { class: "file-about", hidden: true, "data-testid": "file-about" });
    this.node = el("div", { class: "file-source" }, this.input, this.drop, this.about);
    this.#listenForDrops();
  }

  #listenForDrops() {
    const over = (isOver) => (event) => {
      event.preventDefault();
      this.drop.classList.toggle("is-over", isOver);
    };
    this.drop.addEventListener("dragover", over(true));
    this.drop.addEventListener("dragleave", over(false));
    this.drop.addEventListener("drop", (event) => {
      over(false)(event);
      this.take(event.dataTransfer.files[0]);
    });
  }

  async take(file) {
    if (!file) return;
    try {
      this.format = await inspect(file);
      if (this.format.kind === "lines") this.format.columns = ["text"];
      this.sample = [];
      for await (const row of records(file, this.format)) {
        this.sample.push(row);
        if (this.sample.length === SAMPLE) break;
      }
      if (!this.sample.length) throw new Error("the file has no documents");
      this.columns = chooseColumns(this.format.columns, this.sample);
      this.file = file;
    } catch (error) {
      this.file = null;
      notifyError(error, `${file.name} could not be read`);
    }
    this.input.value = ""; // the same file can be chosen again
    this.#describe();
    this.onChange();
  }

  forget() {
    this.file = null;
    this.#describe();
    this.onChange();
  }

  #describe() {
    this.about.hidden = !this.file;
    this.drop.classList.toggle("is-small", Boolean(this.file));
    this.choose.textContent = this.file ? "Choose another file" : "Choose a file";
    if (!this.file) return;
    const { format } = this;
    const said = [
      KINDS[format.kind],
      format.delimiter && `separated by ${SIGNS[format.delimiter]}`,
      bytes(this.file.size),
    ];
    if (format.encoding !== "utf-8") said.push(`not UTF-8, read as ${format.encoding}`);
    this.about.replaceChildren(
      el(
        "p",
        {},
        name(this.file.name, { class: "file-name" }),
        el("span", { class: "soft", text: ` ${said.filter(Boolean).join(", ")}` }),
      ),
      ...(format.kind === "lines" ? [] : [el(
        "div",
        { class: "file-columns" },
        this.#select("text", "Text column"),
        this.#select("id", "Id column"),
      )]),
    );
  }

  #select(role, title) {
    const options = role === "id" ? [["", "none: numbered from 1"]] : [];
    options.push(...this.format.columns.map((column) => [column, column]));
    const menu = el(
      "select",
      { "data-testid": `${role}-column`, onchange: () => this.#choose(role, menu.value || null, hint) },
      ...options.map(([value, text]) => el("option", { value, text, selected: value === (this.columns[role] ?? "") })),
    );
    const hint = el("small", { text: role === "text" ? `chosen: ${this.columns.reason}` : "" });
    return el("label", {}, el("span", { text: title }), menu, hint);
  }

  #choose(role, column, hint) {
    this.columns[role] = column;
    hint.textContent = "";
    this.onChange();
  }

  /** The first documents, to look at. */
  preview(n) {
    return this.sample.slice(0, n).map((row, at) => documentOf(row, this.columns, at + 1));
  }

  /** All documents, read anew. */
  async *documents() {
    let place = 0;
    for await (const row of records(this.file, this.format)) {
      place += 1;
      yield documentOf(row, this.columns, place);
    }
  }
}

/** Yields documents in parts within the server's limits of documents and bytes per request. */
export async function* chunks(documents, { max_documents: most, max_body_bytes: mostBytes }) {
  let [part, size] = [[], 0];
  for await (const document of documents) {
    const own = encoder.encode(JSON.stringify(document)).length + 1;
    if (part.length && (part.length >= most || size + own > 0.9 * mostBytes)) {
      yield part;
      [part, size] = [[], 0];
    }
    part.push(document);
    size += own;
  }
  if (part.length) yield part;
}
