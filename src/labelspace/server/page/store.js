// What all views share: the server, the models, the model in use, and the filters. Views listen for changes.

import { keepSetting, setting } from "./storage.js";

export const EVERYTHING = 0.49; // the place of the slider to the left of a precision of 50 %

class Store extends EventTarget {
  /** The server's description: limits, read_only. */
  server = null;
  /** @type {Array<Object>} */
  models = [];
  model = null;
  /** The number of requested suggestions. */
  k = Number(setting("k")) || 10;
  /** Expected precision of what is shown, or EVERYTHING. */
  sure = Number(setting("sure")) || EVERYTHING;
  /** The reason why writing is refused, or null. */
  readOnly = null;
  /** Labels to suggest from or to leave out, by name. @type {Map<string, Object>} */
  filters = new Map();

  on(event, listener, signal) {
    this.addEventListener(event, listener, { signal });
  }

  tell(event) {
    this.dispatchEvent(new Event(event));
  }

  setServer(server, models) {
    this.server = server;
    this.models = models;
    if (server.read_only) this.readOnly = "This server is read-only.";
  }

  useModel(id) {
    const found = this.models.find((model) => model.id === id) ?? this.models[0];
    if (found === this.model) return;
    const isOther = this.model && this.model.id !== found.id;
    this.model = found;
    if (isOther) this.filters.clear();
    this.tell("model");
  }

  /** Takes a new description of a model, such as that of a new version. */
  updateModel(model) {
    this.models = this.models.map((known) => (known.id === model.id ? model : known));
    if (this.model?.id === model.id) this.model = model;
  }

  setSure(precision) {
    this.sure = precision;
    keepSetting("sure", String(precision));
    this.tell("sure");
  }

  setK(k) {
    this.k = k;
    keepSetting("k", String(k));
    this.tell("options");
  }

  setFilter(label, filter) {
    if (filter) this.filters.set(label, filter);
    else this.filters.delete(label);
    this.tell("options");
  }

  clearFilters() {
    this.filters.clear();
    this.tell("options");
  }

  refuseWriting(reason) {
    this.readOnly = reason;
    this.tell("writing");
  }

  /** The filters as the API takes them. */
  filterOptions() {
    const chosen = [...this.filters.values()];
    const only = chosen.filter((filter) => filter.mode === "only");
    return {
      include: only.filter((filter) => filter.isLeaf).map((filter) => filter.label),
      under: only.filter((filter) => !filter.isLeaf).map((filter) => filter.label),
      exclude: [...new Set(chosen.filter((filter) => filter.mode === "not").flatMap((filter) => filter.labels))],
    };
  }

  /** The row of the precision table that the slider stands at; null where everything is shown. */
  precisionRow() {
    const rows = this.precisionRows();
    if (this.sure <= EVERYTHING || !rows.length) return null;
    return rows.filter((row) => row.precision <= this.sure + 1e-9).at(-1) ?? null;
  }

  /** The precisions that the model can reach. */
  precisionRows() {
    if (!this.model?.calibrated) return [];
    return this.model.precision.filter((row) => row.threshold !== null);
  }
}

export const store = new Store();
