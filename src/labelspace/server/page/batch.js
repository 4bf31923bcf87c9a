// Batch: tags a whole file, and offers the answers as files.

import { BatchRun } from "./batch_run.js";
import { button, el, name, setGauge, shown } from "./dom.js";
import { download } from "./download.js";
import { FilterChips } from "./filters.js";
import { certainty, count, duration, percent, plural } from "./format.js";
import { notify, notifyError } from "./notices.js";
import { FileSource } from "./source.js";
import { store } from "./store.js";

const PREVIEW = 8; // rows of the table
const SHOWN_LABELS = 5; // in a row
const ABOUT_CSV =
  "In CSV files, a cell that begins with = + - @ or a tab gets an apostrophe in front: a spreadsheet would run it as " +
  "a formula. JSON lines have the exact texts.";

class Batch {
  constructor(main, signal) {
    this.signal = signal;
    this.source = new FileSource({ onChange: () => this.#onFile() });
    this.chips = new FilterChips();
    this.table = el("div", {
      class: "wide",
      hidden: true,
      tabindex: "0",
      role: "group",
      "aria-label": "First documents",
    });
    this.start = button("Tag all", {
      class: "button is-main",
      "data-testid": "batch-start",
      onclick: () => this.run(),
    });
    this.cancel = button("Cancel", {
      "data-testid": "batch-cancel",
      hidden: true,
      onclick: () => this.stopper?.abort(),
    });
    this.said = el("span", { role: "status", class: "soft", "data-testid": "batch-status" });
    this.fill = el("span", { class: "gauge-fill" });
    this.progress = el(
      "div",
      {
        class: "gauge batch-progress",
        role: "progressbar",
        "aria-label": "Tagged",
        "aria-valuemin": "0",
        "aria-valuemax": "100",
        hidden: true,
      },
      this.fill,
    );
    this.options = this.#options();
    this.downloads = this.#downloads();
    this.work = el(
      "div",
      { class: "stack", hidden: true },
      this.options,
      el("div", { class: "row" }, this.start, this.cancel, this.said),
      this.progress,
      this.downloads,
      this.table,
    );
    main.append(el(
      "div",
      { class: "page" },
      el(
        "header",
        { class: "page-head" },
        el("h1", { text: "Tag a file" }),
        el("p", {
          class: "soft",
          text: "The file is read in this browser and sent to the server in parts; the server does not keep it.",
        }),
      ),
      this.source.node,
      this.work,
    ));
    signal.addEventListener("abort", () => this.stopper?.abort());
    store.on("options", () => this.chips.update(), signal);
    store.on("model", () => this.#onModel(), signal);
    this.#onModel();
  }

  #options() {
    this.number = el("input", { type: "number", min: "1", value: "5", "data-testid": "batch-k", required: true });
    this.precision = el("select", { "data-testid": "batch-precision" });
    this.consistent = el("input", { type: "checkbox", "data-testid": "batch-consistent" });
    this.withText = el("input", { type: "checkbox", "data-testid": "batch-text" });
    this.precisionPart = el("label", {}, el("span", { text: "Keep" }), this.precision);
    this.consistentPart = el("label", { class: "check" }, this.consistent, "with all broader labels");
    return el(
      "div",
      { class: "options-line" },
      el("label", {}, el("span", { text: "Labels per document, at most" }), this.number),
      this.precisionPart,
      this.consistentPart,
      el("label", { class: "check" }, this.withText, "repeat the texts in the answers"),
      this.chips.node,
    );
  }

  #downloads() {
    const offer = (text, testid, make) => button(text, {
      "data-testid": testid,
      onclick: () => make().catch((error) => notifyError(error)),
    });
    const base = () => this.source.file?.name.replace(/(\.[a-z]+)?(\.gz)?$/i, "") || "answers";
    const csv = (byLabel) => async () => download(`${base()}-labels.csv`, await this.done.csv(byLabel), "text/csv");
    return el(
      "section",
      { class: "downloads", hidden: true, "aria-label": "Answers" },
      el("div", { class: "row" },
        el("h2", { text: "Answers" }),
        offer(
          "JSON lines",
          "batch-jsonl",
          async () => download(`${base()}-labels.jsonl`, this.done.jsonl(), "application/x-ndjson"),
        ),
        offer("CSV, a row per document", "batch-csv-documents", csv(false)),
        offer("CSV, a row per label", "batch-csv", csv(true))),
      el("p", { class: "hint", text: ABOUT_CSV }),
    );
  }

  #onModel() {
    const rows = store.precisionRows();
    this.precisionPart.hidden = rows.length === 0;
    this.consistentPart.hidden = !store.model.has_hierarchy;
    this.consistent.checked = false;
    this.number.max = String(Math.min(store.server.limits.max_k, store.model.n_labels));
    const offered = rows.filter((row) => Math.round(100 * row.precision) % 5 === 0 || row === rows.at(-1));
    this.precision.replaceChildren(
      el("option", { value: "", text: "all labels" }),
      ...offered.map((row) => el("option", {
        value: row.precision,
        text: `labels of which ${percent(row.precision)} are right${row.shown ? "" : " (estimate)"}`,
      })),
    );
    this.chips.update();
  }

  #onFile() {
    this.stopper?.abort();
    this.work.hidden = !this.source.file;
    this.downloads.hidden = true;
    this.progress.hidden = true;
    if (!this.source.file) return;
    this.#showTable(this.source.preview(PREVIEW).map((document) => ({ document })));
    this.#count();
  }

  /** Reads the file once to count its documents, so that errors in it are shown before anything is sent. */
  async #count() {
    const counter = new AbortController();
    this.stopper = counter;
    this.total = null;
    let n = 0;
    this.said.textContent = "Counting …";
    this.start.disabled = true;
    try {
      for await (const _ of this.source.documents()) {
        n += 1;
        if (counter.signal.aborted) return;
      }
      this.total = n;
      this.said.textContent = plural(n, "document");
      this.start.disabled = false;
    } catch (error) {
      this.said.textContent = "";
      notifyError(error, `${this.source.file.name} could not be read`);
    }
  }

  #showTable(rows) {
    this.table.hidden = false;
    this.cells = rows.map(() => el("td"));
    this.table.replaceChildren(el(
      "table",
      { class: "batch-table", "data-testid": "batch-table" },
      el("caption", { text: `First ${plural(rows.length, "document")}` }),
      el("thead", {}, el("tr", {}, ...["Id", "Text", "Labels"].map((text) => el("th", { scope: "col", text })))),
      el("tbody", {}, ...rows.map(({ document }, at) =>
        el(
          "tr",
          {},
          el("td", { class: "document-id" }, name(document.id)),
          el("td", {}, el("div", { class: "clip", dir: "auto", text: shown(document.text) })),
          this.cells[at],
        ))),
    ));
  }

  #fillTable(answers, from) {
    answers.forEach((answer, at) => {
      const cell = this.cells[from + at];
      if (!cell) return;
      const labels = answer.suggestions.slice(0, SHOWN_LABELS).map((one) =>
        el("li", { class: "chip is-plain" }, name(one.name), el("span", { class: "soft", text: certainty(one) })));
      const more = answer.suggestions.length - labels.length;
      cell.replaceChildren(el(
        "ul",
        { class: "chips" },
        ...labels,
        more > 0 && el("li", { class: "soft", text: `+ ${more}` }),
      ));
      if (answer.note || !labels.length) cell.append(el("span", {
        class: "soft",
        text: answer.note ?? "none is sure enough",
      }));
    });
  }

  async run() {
    if (!this.number.reportValidity()) return;
    const precision = this.precision.value ? { precision: Number(this.precision.value) } : {};
    const options = {
      k: Number(this.number.value),
      consistent: this.consistent.checked,
      ...precision,
      ...store.filterOptions(),
    };
    const run = new BatchRun({ options, withText: this.withText.checked });
    const stopper = new AbortController();
    Object.assign(this, { stopper, done: run });
    this.#setRunning(true);
    const started = performance.now();
    try {
      await run.run(this.source.documents(), stopper.signal, (answers) => {
        this.#fillTable(answers, run.n - answers.length);
        this.#report(run, (performance.now() - started) / 1000);
      });
      this.said.textContent = this.#summary(run);
    } catch (error) {
      if (this.signal.aborted) return;
      this.said.textContent = `Stopped after ${plural(run.n, "document")}; you can download their answers.`;
      if (!stopper.signal.aborted) notifyError(error, "Tagging stopped");
      else notify("Tagging was cancelled.");
    }
    this.#setRunning(false);
    this.downloads.hidden = run.n === 0;
  }

  #summary(run) {
    const unread = run.nUnread ? `; ${plural(run.nUnread, "document")} with no known word, or too long` : "";
    return `${plural(run.n, "document")} tagged with ${plural(run.nLabels, "label")}${unread}.`;
  }

  #report(run, seconds) {
    const share = run.n / Math.max(this.total, 1);
    setGauge(this.fill, share);
    this.progress.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    const left = run.n < this.total ? `, about ${duration((seconds * (this.total - run.n)) / run.n)} left` : "";
    this.said.textContent = `${count(run.n)} of ${plural(this.total, "document")}${left}`;
  }

  #setRunning(isRunning) {
    this.start.hidden = isRunning;
    this.cancel.hidden = !isRunning;
    this.progress.hidden = !isRunning;
    for (const control of this.options.querySelectorAll("input, select")) control.disabled = isRunning;
    if (isRunning) {
      this.downloads.hidden = true;
      setGauge(this.fill, 0);
      for (const cell of this.cells) cell.replaceChildren();
    }
  }
}

export function show(main, signal) {
  return void new Batch(main, signal);
}
