// Review: goes through the inbox one document at a time, first those where a decision tells the model most.

import { api } from "./api.js";
import { button, el, setGauge } from "./dom.js";
import { decidedInWords, sendFeedback } from "./feedback.js";
import { count } from "./format.js";
import { Intake } from "./intake.js";
import { bindKeys } from "./keys.js";
import { notify, notifyError } from "./notices.js";
import { Session } from "./session.js";
import { keepSetting, setting } from "./storage.js";
import { store } from "./store.js";
import { Workbench } from "./workbench.js";

const ORDERS = {
  uncertain: "least sure first",
  disagreement: "most disputed first",
  rare: "rare labels first",
  suspicious: "doubtful decisions again",
  random: "in random order",
};
const AGAIN = "suspicious"; // documents that are done already, for a second look
const FETCHED = 20; // documents at a time

class Review {
  constructor(main, signal) {
    Object.assign(this, { main, signal, queue: [], done: [], current: null, progress: null });
    this.passed = new Set(); // done documents that were looked at again, and left as they are
    this.session = new Session();
    this.#buildBar();
    this.workbench = new Workbench({
      session: this.session, signal, readOnly: true, actions: [this.skipButton, this.saveButton],
    });
    this.intake = new Intake({ signal, onStored: () => (this.#toggleAdding(false), this.load()) });
    this.empty = el("div", { class: "review-empty", "data-testid": "review-empty", hidden: true });
    this.adding = el("div", { class: "review-adding", hidden: true }, this.intake.node);
    main.append(this.bar, this.adding, this.empty, this.workbench.node);
    this.#listen();
  }

  #buildBar() {
    const first = setting("order");
    this.order = el(
      "select",
      { "data-testid": "order", "aria-label": "Order", onchange: () => this.#setOrder() },
      ...Object.entries(ORDERS).map(([value, text]) => el("option", { value, text, selected: value === first })),
    );
    this.fill = el("span", { class: "gauge-fill" });
    this.count = el("span", { "data-testid": "review-progress", role: "status" });
    this.undoButton = button(
      "Undo",
      { class: "button is-quiet", "data-testid": "review-undo", onclick: () => this.undo() },
      "U",
    );
    this.addButton = button("Add documents", {
      class: "button is-quiet",
      "aria-expanded": "false",
      "data-testid": "add-documents",
      onclick: () => this.#toggleAdding(),
    });
    this.skipButton = button("Skip", { "data-testid": "skip", onclick: () => this.skip() }, "N");
    this.saveButton = button(
      "Save & next",
      { class: "button is-main", "data-testid": "save-next", onclick: () => this.save() },
      "S",
    );
    this.bar = el(
      "div",
      { class: "review-bar" },
      el("h1", { class: "visually-hidden", text: "Review" }),
      this.count,
      el("span", { class: "gauge review-done", "aria-hidden": "true" }, this.fill),
      el("span", { class: "spring" }),
      this.undoButton,
      this.order,
      this.addButton,
    );
  }

  #listen() {
    this.session.addEventListener("decisions", () => this.update(), { signal: this.signal });
    store.on("writing", () => this.update(), this.signal);
    store.on("model", () => this.#restart(), this.signal);
    bindKeys("Review", [
      { keys: ["s"], shown: "S", text: "Save and next", run: () => this.save() },
      { keys: ["Ctrl+s"], shown: "Ctrl S", text: "Save and next", inText: true, run: () => this.save() },
      { keys: ["n"], shown: "N", text: "Skip to the next document", run: () => this.skip() },
      { keys: ["u"], shown: "U", text: "Undo the last step", run: () => this.undo() },
    ], this.signal);
  }

  #restart() {
    this.done = [];
    this.session.forgetModel();
    this.workbench.refresh();
    this.load();
  }

  #setOrder() {
    keepSetting("order", this.order.value);
    this.load();
  }

  #toggleAdding(isOpen = this.adding.hidden) {
    this.adding.hidden = !isOpen;
    this.addButton.setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.intake.focus();
    this.update();
  }

  /** Requests the next documents in the chosen order. */
  async load() {
    try {
      const { documents, progress } = await api.review(store.model.id, this.order.value, FETCHED);
      if (this.signal.aborted) return;
      this.queue = documents.filter((each) => !this.passed.has(each.id));
      this.progress = progress;
      this.#open(this.queue.shift() ?? null);
    } catch (error) {
      notifyError(error, "The inbox could not be read");
    }
  }

  /** Shows a document, with earlier decisions if it was shown before. */
  #open(document, decisions = []) {
    this.current = document;
    this.session.restore(decisions);
    this.session.setText(document?.text ?? "", { now: true });
    this.workbench.text.value = document?.text ?? "";
    this.update();
  }

  update() {
    const { pending = 0, done = 0, skipped = 0 } = this.progress ?? {};
    const total = pending + done + skipped;
    const words = decidedInWords(this.session);
    const alsoSkipped = skipped ? `, ${count(skipped)} skipped` : "";
    this.count.textContent = total ? `${count(done)} of ${count(total)} done${alsoSkipped}` : "";
    setGauge(this.fill, total ? (done + skipped) / total : 0);
    this.fill.parentElement.hidden = total === 0;
    this.undoButton.disabled = this.done.length === 0;
    this.saveButton.disabled = !words || this.isBusy || Boolean(store.readOnly);
    this.saveButton.title = store.readOnly ?? (words || "Accept, reject or add a label first");
    this.skipButton.disabled = this.isBusy || Boolean(store.readOnly);
    this.addButton.hidden = Boolean(store.readOnly);
    this.workbench.node.hidden = !this.current;
    this.#showEmpty(total);
  }

  #showEmpty(total) {
    this.empty.hidden = Boolean(this.current) || !this.progress;
    if (this.empty.hidden) return;
    const { title, said } = this.#emptyWords(total);
    this.empty.replaceChildren(...[
      el("h2", { text: title }),
      el("p", { text: said }),
      store.readOnly ? el("p", { class: "soft", text: store.readOnly }) : this.adding.hidden && button(
        "Add documents",
        { class: "button is-main", onclick: () => this.#toggleAdding(true) },
      ),
    ].filter(Boolean));
  }

  #emptyWords(total) {
    if (this.order.value === AGAIN) {
      return { title: "Nothing doubtful", said: "The model finds no decision impossible." };
    }
    if (total) {
      return {
        title: "Done",
        said: "All documents are reviewed. The Model view starts a training on the feedback.",
      };
    }
    const here = store.readOnly ? "" : ", or from here";
    return {
      title: "Nothing to review yet",
      said: `The inbox is empty. Documents come from the file of --inbox, or from POST /review${here}.`,
    };
  }

  async #step(what, work) {
    if (this.isBusy || !this.current || store.readOnly) return;
    this.isBusy = true;
    try {
      const step = await work();
      this.done.push({
        ...step,
        document: this.current,
        decisions: [...this.session.decisions],
        model: store.model.id,
        again: this.order.value === AGAIN,
      });
      this.#count(this.done.at(-1), 1);
      this.isBusy = false;
      // The keyboard works on the next document as soon as it has suggestions.
      const focus = () => this.workbench.list.focus();
      this.session.addEventListener("suggestions", focus, { once: true, signal: this.signal });
      if (this.queue.length) this.#open(this.queue.shift());
      else await this.load();
    } catch (error) {
      this.isBusy = false;
      notifyError(error, what);
    }
    this.update();
  }

  #count({ kind, again }, step) {
    if (again) return; // it was done before
    this.progress[kind] += step;
    this.progress.pending -= step;
  }

  save() {
    if (this.saveButton.disabled) return;
    this.#step(
      "The document was not saved",
      async () => ({ kind: "done", id: await sendFeedback(this.session, this.current.id) }),
    );
  }

  skip() {
    this.#step("The document was not skipped", async () => {
      if (this.order.value === AGAIN) {
        this.passed.add(this.current.id);
        return { kind: "skipped" };
      }
      await api.setReview(store.model.id, this.current.id, "skipped");
      return { kind: "skipped" };
    });
  }

  /** Undoes the last step: its document is shown again, with the decisions. */
  async undo() {
    const last = this.done.at(-1);
    if (!last || this.isBusy) return;
    this.isBusy = true;
    try {
      if (last.kind === "done") await api.withdrawFeedback(last.model, last.id);
      else if (last.again) this.passed.delete(last.document.id);
      else await api.setReview(last.model, last.document.id, "pending");
      this.done.pop();
      this.#count(last, -1);
      if (this.current) this.queue.unshift(this.current);
      this.isBusy = false;
      this.#open(last.document, last.decisions);
      notify(last.kind === "done" ? "Undone: the document is open again." : "The document is open again.");
    } catch (error) {
      this.isBusy = false;
      notifyError(error, "The last step was not undone");
    }
    this.update();
  }
}

export async function show(main, signal) {
  const review = new Review(main, signal);
  review.update();
  await review.load();
}
