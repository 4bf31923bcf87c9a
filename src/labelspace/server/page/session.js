// The state of one document: its text, its suggestions, the decisions, and the reasons for each label.

import { api } from "./api.js";
import { store } from "./store.js";

const TYPING_PAUSE = 250; // milliseconds without a key before the text is sent
const CACHED = 200; // explanations of one text

/**
 * Events: "text", "busy", "suggestions", "decisions".
 * @typedef {{label: string, name: string, path: string[], synonym: ?string, uri: ?string, count: number}} Label
 * @typedef {"accepted"|"rejected"|"added"} State
 */
export class Session extends EventTarget {
  text = "";
  /** @type {Array<Label & {rank: number, score: number, probability: ?number}>} */
  suggestions = [];
  note = null;
  problem = null;
  elapsed = null;
  /** Of the model that made the suggestions. */
  version = null;
  isBusy = false;
  /** @type {Map<string, {label: Label, state: State}>} */
  decisions = new Map();
  #request = null;
  #timer = null;
  #explanations = new Map();

  tell(event) {
    this.dispatchEvent(new Event(event));
  }

  on(event, listener) {
    this.addEventListener(event, listener);
  }

  /** Takes a text, and requests suggestions once it stops changing. */
  setText(text, { now = false } = {}) {
    this.text = text;
    this.#explanations.clear();
    this.tell("text");
    clearTimeout(this.#timer);
    if (now || !text.trim()) this.suggest();
    else this.#timer = setTimeout(() => this.suggest(), TYPING_PAUSE);
  }

  /** Requests suggestions now; the answer to an earlier request is dropped. */
  async suggest() {
    clearTimeout(this.#timer);
    this.#request?.abort();
    this.#request = null;
    if (!this.text.trim()) {
      this.#take({ suggestions: [], note: null }, null);
      return;
    }
    const request = new AbortController();
    this.#request = request;
    this.#setBusy(true);
    const started = performance.now();
    try {
      const body = { text: this.text, k: Math.min(store.k, store.server.limits.max_k), ...store.filterOptions() };
      const answer = await api.suggest(store.model.id, body, request.signal);
      if (request === this.#request) this.#take(answer, performance.now() - started);
    } catch (error) {
      if (request === this.#request) this.#take({ suggestions: this.suggestions, note: null }, null, error);
    }
  }

  #setBusy(isBusy) {
    this.isBusy = isBusy;
    this.tell("busy");
  }

  #take(answer, elapsed, problem = null) {
    const { suggestions, note, version = this.version } = answer;
    Object.assign(this, { suggestions, note, version, elapsed, problem });
    this.#setBusy(false);
    this.tell("suggestions");
  }

  /** The suggestions that are sure enough, and the others. */
  bySureness() {
    const row = store.precisionRow();
    // A guarantee also says how many labels a document keeps at most, where the server tells it.
    const isSure = (one) => !row || (one.probability >= row.threshold && one.rank <= (row.most ?? Infinity));
    return { sure: this.suggestions.filter(isSure), unsure: this.suggestions.filter((one) => !isSure(one)) };
  }

  stateOf(label) {
    return this.decisions.get(label)?.state ?? null;
  }

  /** Decides on a label; the same decision again takes it back. */
  decide(label, state) {
    const known = this.stateOf(label.label);
    const isSame = known === state || (known === "added" && state === "accepted");
    if (isSame) this.decisions.delete(label.label);
    else this.decisions.set(label.label, { label, state });
    this.tell("decisions");
  }

  /** Adds a label that was searched for; a suggested label counts as accepted. */
  add(label) {
    const suggested = this.suggestions.find((one) => one.label === label.label);
    this.decisions.set(label.label, { label: suggested ?? label, state: suggested ? "accepted" : "added" });
    this.tell("decisions");
  }

  restore(decisions) {
    this.decisions = new Map(decisions);
    this.tell("decisions");
  }

  /** Labels by state, as feedback takes them. */
  labelsOf(...states) {
    return [...this.decisions.values()].filter((one) => states.includes(one.state)).map((one) => one.label);
  }

  feedback() {
    const names = (state) => this.labelsOf(state).map((label) => label.label);
    return { text: this.text, accepted: names("accepted"), rejected: names("rejected"), added: names("added") };
  }

  /** The reasons for a label; requested once for each. */
  explain(label) {
    let found = this.#explanations.get(label);
    if (!found) {
      if (this.#explanations.size >= CACHED) this.#explanations.clear();
      found = api.explain(store.model.id, {
        text: this.text,
        labels: [label],
      }).then((answer) => answer.explanations[0]);
      found.catch(() => this.#explanations.delete(label));
      this.#explanations.set(label, found);
    }
    return found;
  }

  /** Forgets what belongs to another model. */
  forgetModel() {
    this.version = null;
    this.#explanations.clear();
    this.suggestions = [];
    this.restore([]);
  }
}
