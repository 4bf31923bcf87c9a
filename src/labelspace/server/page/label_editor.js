// Edits of labels: find one to rename, merge or retire it, or add a new one. Each edit makes a version of the model.

import { api } from "./api.js";
import { confirmed } from "./confirm.js";
import { button, el, name, pathNode, shown, uniqueId } from "./dom.js";
import { plural } from "./format.js";
import { follow, hasEnded, lastJob } from "./jobs.js";
import { notify, notifyError, sentence } from "./notices.js";
import { LabelSearch } from "./search.js";

const HINT = "Rename or describe a label, merge it into another one, retire it, or add one. Each edit makes a " +
  "version, so you can go back.";
const EXAMPLES = "Texts that have it, one per line";
const MORE_NAMES = "Further names, one per line";
const DESCRIPTION = "Description: what the label is for";

export class LabelEditor {
  /** @param {Object} model @param {AbortSignal} signal @param {(focus: string) => Promise<void>} onNewModel */
  constructor(model, signal, onNewModel) {
    Object.assign(this, { model, signal, onNewModel });
    this.search = new LabelSearch({
      onPick: (label) => this.open(label.label),
      onLeave: () => this.search.input.blur(),
      title: "Find a label",
      testid: "label-search",
      key: null,
      picked: (label) => `${shown(label.name)} is open`,
    });
    this.addButton = button("Add a label", {
      "data-testid": "label-add",
      "aria-expanded": "false",
      onclick: () => this.#toggleAdding(),
    });
    this.step = el("p", { role: "status", "data-testid": "label-job", hidden: true });
    this.panel = el("div", { class: "label-panel", hidden: true });
    this.node = el(
      "section",
      { class: "part", "aria-label": "Labels", "data-testid": "labels", tabindex: "-1" },
      el("h2", { text: "Labels" }),
      el("p", { class: "soft", text: HINT }),
      el("div", { class: "label-tools" }, this.search.node, this.addButton),
      this.step,
      this.panel,
    );
    this.#resume();
  }

  async #resume() {
    try {
      const job = await lastJob(this.model.id, "labels");
      if (job && !hasEnded(job)) await this.#follow(job);
    } catch (error) {
      notifyError(error, "The jobs could not be read");
    }
  }

  #show(...content) {
    this.panel.replaceChildren(...content);
    this.panel.hidden = content.length === 0;
    this.addButton.setAttribute("aria-expanded", "false");
  }

  #toggleAdding() {
    const isOpen = this.addButton.getAttribute("aria-expanded") === "true";
    this.#show();
    if (isOpen) return;
    const title = field("Name", "label-name");
    const further = lines(MORE_NAMES, "label-alt");
    const about = lines(DESCRIPTION, "label-description");
    const examples = lines(EXAMPLES, "label-examples", 4);
    const form = this.#form("Add the label", [title, further, about, examples], () => {
      const body = { name: title.input.value.trim(), alt: linesOf(further), examples: linesOf(examples) };
      if (about.input.value.trim()) body.description = about.input.value;
      return this.#run(() => api.addLabel(this.model.id, body), `${shown(body.name)} was added.`);
    });
    this.#show(el("h3", { text: "A new label" }), form);
    this.addButton.setAttribute("aria-expanded", "true");
    title.input.focus();
  }

  /** Shows what can be done with a label. */
  async open(label) {
    try {
      const found = await api.label(this.model.id, label);
      if (this.signal.aborted) return;
      this.#show(this.#head(found), this.#naming(found), this.#merging(found), this.#retiring(found));
      this.panel.querySelector("input").focus();
    } catch (error) {
      notifyError(error, "The label could not be read");
    }
  }

  #head(label) {
    const found = [plural(label.count, "training document")];
    if (label.synonyms.length) found.push(`also called ${label.synonyms.slice(0, 8).map(shown).join(", ")}`);
    return el(
      "div",
      { class: "label-head", "data-testid": "label-open" },
      label.path.length > 0 && pathNode(label.path),
      el("h3", {}, name(label.name)),
      el("p", { class: "soft", text: found.join("; ") }),
      el("button", {
        type: "button",
        class: "link",
        text: "Close",
        onclick: () => (this.#show(), this.search.focus()),
      }),
    );
  }

  #naming(label) {
    const title = field("Name", "label-name", label.label);
    const further = lines(MORE_NAMES, "label-alt");
    const about = lines(DESCRIPTION, "label-description", 3);
    about.input.value = shown(label.description ?? "");
    const before = about.input.value;
    return this.#form("Save the label", [title, further, about], () => {
      const given = title.input.value.trim();
      const body = { alt: linesOf(further), ...(given === label.label ? {} : { name: given }) };
      if (about.input.value !== before) body.description = about.input.value;
      if (Object.keys(body).length === 1 && !body.alt.length) return notify("The label is as it was.");
      return this.#run(() => api.changeLabel(this.model.id, label.label, body), "The label was saved.");
    });
  }

  #merging(label) {
    const other = new LabelSearch({
      onPick: (into) => this.#merge(label, into),
      onLeave: () => other.input.blur(),
      title: "Merge into …",
      testid: "label-merge",
      key: null,
      isHidden: (found) => found.label === label.label,
      picked: (into) => `${shown(into.name)} is chosen`,
    });
    return el(
      "div",
      { class: "label-action" },
      el("p", {}, el("b", { text: "Merge. " }), "The other label is suggested for both, and gets the names of both."),
      other.node,
    );
  }

  #retiring(label) {
    const retire = button("Retire the label", { "data-testid": "label-retire", onclick: () => this.#retire(label) });
    return el(
      "div",
      { class: "label-action" },
      el("p", {}, el("b", { text: "Retire. " }), "The label is not suggested any more. Add it to bring it back."),
      retire,
    );
  }

  async #merge(label, into) {
    const title = el("span", {}, "Merge ", name(label.name), " into ", name(into.name), "?");
    const text = `From now on ${shown(into.name)} is suggested in the place of ${shown(label.name)}.`;
    if (!await confirmed({ title, text, action: "Merge" })) return;
    await this.#run(() => api.mergeLabel(this.model.id, label.label, into.label), "The labels were merged.");
  }

  async #retire(label) {
    const title = el("span", {}, "Retire ", name(label.name), "?");
    const text = "It is not suggested any more. What the model learned of it is kept.";
    if (!await confirmed({ title, text, action: "Retire" })) return;
    await this.#run(() => api.retireLabel(this.model.id, label.label), `${shown(label.name)} was retired.`);
  }

  #form(action, fields, send) {
    const onsubmit = (event) => {
      event.preventDefault();
      send();
    };
    const submit = el("button", { class: "button is-main", text: action, "data-testid": "label-save" });
    return el("form", { class: "label-form", onsubmit }, ...fields.map(({ node }) => node), el("div", {}, submit));
  }

  async #run(request, done) {
    this.#setBusy(true);
    try {
      const job = await this.#follow(await request());
      if (!job) return;
      if (job.state === "failed") notify(`The label was not changed: ${job.error}`, { isError: true });
      else {
        notify(done);
        await this.onNewModel("labels");
      }
    } catch (error) {
      notifyError(error, "The label was not changed");
    }
    this.step.hidden = true;
    this.#setBusy(false);
  }

  async #follow(job) {
    this.step.hidden = false;
    const onStep = (now) => {
      this.step.textContent = sentence(`${now.step || now.state} …`);
    };
    const last = await follow(job, { signal: this.signal, onStep });
    this.step.hidden = true;
    if (last?.state === "done") await api.reload(this.model.id);
    return last;
  }

  #setBusy(isBusy) {
    for (const control of this.node.querySelectorAll("button, input, textarea")) control.disabled = isBusy;
  }
}

function field(text, testid, value = "") {
  const id = uniqueId("field");
  const input = el("input", { type: "text", id, value, required: true, autocomplete: "off", "data-testid": testid });
  return { input, node: el("div", { class: "label-field" }, el("label", { for: id, text }), input) };
}

function lines(text, testid, rows = 2) {
  const id = uniqueId("field");
  const input = el("textarea", { id, rows, class: "field", "data-testid": testid });
  return { input, node: el("div", { class: "label-field" }, el("label", { for: id, text }), input) };
}

const linesOf = ({ input }) => input.value.split("\n").map((line) => line.trim()).filter(Boolean);
