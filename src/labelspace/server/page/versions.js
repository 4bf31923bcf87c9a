// The versions of a model: what each learned, how good it is, and a way back to those that are kept.

import { api } from "./api.js";
import { confirmed } from "./confirm.js";
import { button, el, shown } from "./dom.js";
import { count, date, figure, plural } from "./format.js";
import { notify, notifyError } from "./notices.js";
import { store } from "./store.js";

const SHOWN = 6; // of many versions
const HEADINGS = ["Version", "When", "Made by", "Documents", "Labels", "nDCG@5", ""];
const HINT = "Each learning and each edit of labels makes a version. The nDCG@5 is measured on documents that no " +
  "version learned from, with its 95 % interval.";

export class Versions {
  /** @param {Object} model @param {AbortSignal} signal @param {(focus: string) => Promise<void>} onNewModel */
  constructor(model, signal, onNewModel) {
    Object.assign(this, { model, signal, onNewModel, showsAll: false });
    this.body = el("div", { class: "stack versions-part" }, el("p", { class: "soft", text: "…" }));
    this.node = el(
      "section",
      { class: "part", "aria-label": "Versions", "data-testid": "versions", tabindex: "-1" },
      el("h2", { text: "Versions" }),
      this.body,
    );
    this.#load();
  }

  async #load() {
    try {
      const { versions } = await api.versions(this.model.id);
      this.versions = versions.reverse();
      this.#show();
    } catch (error) {
      this.body.replaceChildren(el("p", { class: "wrong", text: `The versions could not be read: ${error.message}.` }));
    }
  }

  #show() {
    const listed = this.showsAll ? this.versions : this.versions.slice(0, SHOWN);
    const table = el(
      "table",
      { class: "versions" },
      el("thead", {}, el("tr", {}, ...HEADINGS.map((text) => (text ? el("th", { scope: "col", text }) : el("td"))))),
      el("tbody", {}, ...listed.map((version) => this.#row(version))),
    );
    const more = this.versions.length > listed.length && button(`Show all ${count(this.versions.length)}`, {
      class: "button is-quiet",
      "data-testid": "versions-all",
      onclick: () => {
        this.showsAll = true;
        this.#show();
        this.node.focus();
      },
    });
    this.body.replaceChildren(el("p", { class: "soft hint", text: HINT }), table, ...(more ? [more] : []));
  }

  #row(version) {
    const cells = [
      version.time ? date(version.time) : "",
      origin(version),
      amount(version.n_documents, version.n_new_documents),
      amount(version.n_labels, version.n_new_labels),
      measured(version.held_out),
      this.#way(version),
    ];
    const title = version.new_labels.length ? `New labels: ${version.new_labels.map(shown).join(", ")}` : null;
    return el(
      "tr",
      { "data-testid": "version", "data-number": version.number, "aria-current": version.is_current && "true" },
      el("th", { scope: "row" }, el("b", { text: count(version.number) })),
      ...cells.map((content, at) => el(
        "td",
        { "data-head": HEADINGS[at + 1], title: HEADINGS[at + 1] === "Labels" ? title : null },
        ...[content].flat(),
      )),
    );
  }

  #way(version) {
    if (version.is_current) return el("span", { class: "tag is-current", text: "in use" });
    if (!version.is_kept) return el("span", { class: "soft", text: "no longer kept" });
    if (store.readOnly) return "";
    return button("Go back", {
      class: "button is-small",
      "data-testid": "go-back",
      "aria-label": `Go back to version ${version.number}`,
      onclick: (event) => this.goBack(version, event.currentTarget),
    });
  }

  async goBack(version, opener) {
    const current = this.versions.find((one) => one.is_current);
    const text = `Version ${current.number} is kept, so you can return to it. Feedback and edits of labels that came ` +
      `after version ${version.number} are not in use then; the feedback can be learned again.`;
    if (!await confirmed({ title: `Go back to version ${version.number}?`, text, action: "Go back" })) return;
    opener.disabled = true;
    try {
      const { number } = await api.rollback(this.model.id, version.number);
      notify(`Version ${version.number} is in use again, as version ${number}.`);
      await this.onNewModel("versions");
    } catch (error) {
      notifyError(error, "The version was not changed");
      opener.disabled = false;
    }
  }
}

function origin({ made_by: by, data, restored, forced }) {
  const words = { train: "training", learn: "learning", labels: "edit of labels", rollback: `return to ${restored}` };
  const from = data === "feedback" ? "feedback" : data;
  const said = el("span", { text: words[by] ?? by });
  if (from && from !== words[by]) said.append(el("small", { class: "meaning", text: `from ${shown(from)}` }));
  if (forced) said.append(" ", el("span", { class: "tag", text: "insisted", title: "It was worse, and insisted on." }));
  return said;
}

const amount = (all, added) =>
  added ? [count(all), el("small", { class: "meaning", text: `${count(added)} new` })] : count(all);

function measured(heldOut) {
  if (!heldOut) return "";
  const { value, low, high } = heldOut.new;
  const from = `on ${plural(heldOut.n, "document")} of ${shown(heldOut.source)}`;
  return [
    el("span", { text: figure(value), title: from }),
    el("small", { class: "meaning", text: `${low.toFixed(1)} to ${high.toFixed(1)}` }),
  ];
}
