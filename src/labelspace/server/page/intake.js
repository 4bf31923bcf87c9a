// Documents for the inbox: a line each, or a file.

import { api } from "./api.js";
import { button, el } from "./dom.js";
import { count, plural } from "./format.js";
import { notify, notifyError } from "./notices.js";
import { chunks, FileSource } from "./source.js";
import { store } from "./store.js";

const RETRIES = 20; // for each part, while the server is busy

export class Intake {
  /** @param {{signal: AbortSignal, onStored: () => void}} options */
  constructor({ signal, onStored }) {
    Object.assign(this, { signal, onStored });
    this.lines = el("textarea", {
      id: "inbox-lines",
      class: "field intake-lines",
      rows: "4",
      "data-testid": "inbox-lines",
      oninput: () => this.update(),
    });
    this.source = new FileSource({ onChange: () => this.update() });
    this.add = button("Add to the inbox", {
      class: "button is-main",
      "data-testid": "inbox-add",
      onclick: () => this.store(),
    });
    this.said = el("span", { class: "soft", role: "status" });
    this.node = el(
      "section",
      { class: "intake", "aria-label": "Add documents" },
      el("div", { class: "intake-ways" },
        el(
          "div",
          { class: "stack" },
          el("label", { for: "inbox-lines", text: "Paste documents, one per line" }),
          this.lines,
        ),
        el("div", { class: "stack" }, el("span", { text: "or a file" }), this.source.node)),
      el("div", { class: "row" }, this.add, this.said),
    );
    this.update();
  }

  focus() {
    this.lines.focus();
  }

  get texts() {
    return this.lines.value.split("\n").map((line) => line.trim()).filter(Boolean);
  }

  update() {
    this.add.disabled = this.isBusy || !(this.texts.length || this.source.file);
  }

  async *#documents() {
    for (const text of this.texts) yield { text };
    if (this.source.file) {
      for await (const document of this.source.documents()) if (document.text.trim()) yield document;
    }
  }

  async store() {
    let [stored, known] = [0, 0];
    this.isBusy = true;
    this.update();
    try {
      for await (const part of chunks(this.#documents(), store.server.limits)) {
        const answer = await api.addToReview(store.model.id, part, this.signal, RETRIES);
        stored += answer.stored;
        known += answer.known;
        this.said.textContent = `${count(stored)} added …`;
      }
      this.lines.value = "";
      this.source.forget();
      notify(`${plural(stored, "document")} added${known ? `; ${count(known)} were in the inbox already` : ""}.`);
    } catch (error) {
      notifyError(error, stored ? `${count(stored)} were added, the others were not` : "Nothing was added");
    }
    this.said.textContent = "";
    this.isBusy = false;
    this.update();
    if (stored) this.onStored();
  }
}
