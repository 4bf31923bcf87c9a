// Tags the documents of a file, a part at a time, and keeps the answers as JSON lines.

import { api } from "./api.js";
import { csvOf } from "./download.js";
import { chunks } from "./source.js";
import { store } from "./store.js";

const RETRIES = 100; // of each part, while the server is busy; each waits as long as the server asks

/** Answers outside of the memory of scripts: a browser keeps large blobs on disk. */
export class BatchRun {
  constructor({ options, withText }) {
    Object.assign(this, { options, withText, n: 0, nLabels: 0, nUnread: 0, parts: [] });
    this.model = store.model.id;
  }

  /** @param {AsyncIterable<{id: string, text: string}>} documents @param {(answers: Array<Object>) => void} onPart */
  async run(documents, signal, onPart) {
    for await (const part of chunks(documents, store.server.limits)) {
      signal.throwIfAborted();
      const answers = await this.#answers(part, signal);
      this.parts.push(new Blob(answers.map((answer) => `${JSON.stringify(answer)}\n`)));
      this.n += answers.length;
      for (const answer of answers) {
        this.nLabels += answer.suggestions.length;
        this.nUnread += answer.note ? 1 : 0;
      }
      onPart(answers);
    }
  }

  async #answers(part, signal) {
    const most = store.server.limits.max_text_characters;
    const isTooLong = (document) => document.text.length > most && [...document.text].length > most;
    const sent = part.filter((document) => !isTooLong(document));
    const body = { documents: sent, ...this.options };
    const results = sent.length ? (await api.suggestBatch(this.model, body, signal, RETRIES)).results : [];
    const tooLong = { suggestions: [], note: `the text has more than ${most} characters, and was not sent` };
    return part.map((document) => this.#answer(document, isTooLong(document) ? tooLong : results.shift()));
  }

  #answer(document, result) {
    const suggestions = result.suggestions.map(({
      label,
      name,
      path,
      uri,
      score,
      probability,
    }) => ({ label, name, path, uri, score, probability }));
    return { id: document.id, ...(this.withText ? { text: document.text } : {}), suggestions, note: result.note };
  }

  jsonl() {
    return new Blob(this.parts);
  }

  async *#lines() {
    for (const part of this.parts) {
      for (const line of (await part.text()).split("\n")) if (line) yield JSON.parse(line);
    }
  }

  /** A row for each label, or for each document. */
  async csv(byLabel) {
    const [head, rowsOf] = byLabel ? this.#byLabel() : this.#byDocument();
    const parts = [csvOf([head])];
    for await (const answer of this.#lines()) parts.push(csvOf(rowsOf(answer)));
    return new Blob(parts);
  }

  #document(answer) {
    return this.withText ? [answer.id, answer.text] : [answer.id];
  }

  #byLabel() {
    const head = ["id", ...(this.withText ? ["text"] : []), "rank", "label", "name", "path", "uri", "probability"];
    const blank = ["", "", "", "", "", ""];
    const rowsOf = (answer) => {
      const rows = answer.suggestions.map((one, at) => [
        at + 1,
        one.label,
        one.name,
        one.path.join(" > "),
        one.uri ?? "",
        one.probability ?? one.score,
      ]);
      return (rows.length ? rows : [blank]).map((row) => [...this.#document(answer), ...row]);
    };
    return [head, rowsOf];
  }

  #byDocument() {
    const places = Array.from({ length: this.options.k }, (_, at) => at);
    const head = [
      "id",
      ...(this.withText ? ["text"] : []),
      ...places.flatMap((at) => [`label_${at + 1}`, `probability_${at + 1}`]),
    ];
    const rowsOf = (answer) => [
      [...this.#document(answer), ...places.flatMap((at) => {
        const one = answer.suggestions[at];
        return one ? [one.label, one.probability ?? one.score] : ["", ""];
      })],
    ];
    return [head, rowsOf];
  }
}
