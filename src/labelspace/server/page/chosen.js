// What was chosen: chips, ways to take it along, and the search that adds a label.

import { el, name, shown } from "./dom.js";
import { copyText, csvOf, download } from "./download.js";
import { icon } from "./icons.js";
import { notify, notifyError } from "./notices.js";
import { LabelSearch } from "./search.js";

const CODE = /\d/; // a name such as R05.3 says little without its synonym

export class Chosen {
  /** @param {{session: import("./session.js").Session, onLeave: () => void, actions?: Node[]}} options */
  constructor({ session, onLeave, actions = [] }) {
    this.session = session;
    this.search = new LabelSearch({
      onPick: (label) => session.add(label),
      isChosen: (label) => ["accepted", "added"].includes(session.stateOf(label)),
      onLeave,
    });
    this.chips = el("ul", { class: "chips", "data-testid": "chosen", "aria-label": "Chosen labels" });
    this.exports = el("div", { class: "exports" }, ...this.#exports());
    this.node = el(
      "section",
      { class: "chosen", "aria-label": "Chosen labels" },
      this.chips,
      this.search.node,
      el("div", { class: "chosen-foot" }, this.exports, el("span", { class: "spring" }), ...actions),
    );
  }

  #exports() {
    const make = (text, testid, run, symbol) =>
      el(
        "button",
        { type: "button", class: "button is-quiet", "data-testid": testid, onclick: run },
        icon(symbol),
        text,
      );
    this.uris = make("URIs", "copy-uris", () => this.#copy((label) => label.uri, "URI"), "copy");
    this.uris.title = "Copy the URIs, one per line";
    const copy = make("Copy", "copy", () => this.#copy((label) => label.label, "name"), "copy");
    copy.title = "Copy the names, one per line";
    return [
      copy,
      this.uris,
      make("JSON", "download-json", () => this.#json(), "download"),
      make("CSV", "download-csv", () => this.#csv(), "download"),
    ];
  }

  get labels() {
    return this.session.labelsOf("accepted", "added");
  }

  update() {
    const entries = [...this.session.decisions.values()].filter((one) => one.state !== "rejected");
    this.chips.replaceChildren(...entries.map((entry) => this.#chip(entry)));
    if (!entries.length) this.chips.append(el("li", { class: "empty", text: "Nothing chosen yet." }));
    this.exports.hidden = entries.length === 0;
    this.uris.hidden = !this.labels.some((label) => label.uri);
  }

  #chip({ label, state }) {
    const remove = () => {
      this.session.decide(label, state);
      this.search.input.focus({ preventScroll: true });
    };
    return el(
      "li",
      {
        class: `chip is-${state}`,
        "data-testid": "chip",
        "data-label": label.label,
        title: [...label.path, label.name].map(shown).join(" › "),
      },
      state === "added" && icon("add"),
      name(label.name),
      label.synonym && CODE.test(label.name) && name(label.synonym, { class: "synonym chip-synonym" }),
      el(
        "button",
        {
          type: "button",
          class: "chip-remove",
          "data-testid": "chip-remove",
          "aria-label": `Remove ${shown(label.name)}`,
          onclick: remove,
        },
        icon("reject"),
      ),
    );
  }

  async #copy(value, what) {
    const lines = this.labels.map(value).filter(Boolean);
    try {
      await copyText(lines.join("\n"));
      notify(`Copied ${lines.length} ${what}${lines.length === 1 ? "" : "s"}.`);
    } catch (error) {
      notifyError(error, "The browser refused to copy");
    }
  }

  #rows() {
    return [...this.session.decisions.values()].filter((one) => one.state !== "rejected");
  }

  #json() {
    const labels = this.#rows().map(({ label, state }) => ({
      label: label.label,
      name: label.name,
      path: label.path,
      uri: label.uri,
      state,
      probability: label.probability ?? null,
    }));
    download("labels.json", `${JSON.stringify({ text: this.session.text, labels }, null, 2)}\n`, "application/json");
  }

  #csv() {
    const rows = this.#rows().map(({ label, state }) => [
      label.label,
      label.name,
      label.path.join(" > "),
      label.uri ?? "",
      state,
      label.probability ?? "",
    ]);
    download("labels.csv", csvOf([["label", "name", "path", "uri", "state", "probability"], ...rows]), "text/csv");
  }
}
