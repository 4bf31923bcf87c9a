// Stored feedback, and training on it: a job on the server, followed until it ends.

import { api } from "./api.js";
import { button, el, setGauge } from "./dom.js";
import { count, figure, plural } from "./format.js";
import { ended, notify, notifyError, sentence } from "./notices.js";
import { store } from "./store.js";
import { table } from "./table.js";

const POLL_PAUSE = 1000; // milliseconds
const SHOWN = ["nDCG@5", "nDCG@3", "P@1", "P@3", "P@5", "PSP@5", "R@5"];
const ENDED = ["done", "failed"];

export class Learning {
  /** @param {Object} model @param {AbortSignal} signal @param {() => Promise<void>} onNewModel */
  constructor(model, signal, onNewModel) {
    Object.assign(this, { model, signal, onNewModel });
    this.learn = button("Learn from feedback", {
      class: "button is-main",
      "data-testid": "learn",
      onclick: () => this.start(),
    });
    this.reload = button("Reload from disk", {
      "data-testid": "reload",
      title: "Load the model from its folder again, for example after a training elsewhere",
      onclick: () => this.readAgain(),
    });
    this.step = el("p", { role: "status", "data-testid": "job" });
    this.fill = el("span", { class: "gauge-fill" });
    this.bar = el(
      "div",
      {
        class: "gauge batch-progress",
        role: "progressbar",
        "aria-label": "Learning",
        "aria-valuemin": "0",
        "aria-valuemax": "100",
        hidden: true,
      },
      this.fill,
    );
    this.result = el("div", { "data-testid": "job-result" });
    const may = !store.readOnly;
    this.learn.hidden = !may || !model.can_learn;
    this.reload.hidden = !may;
    this.node = el(
      "section",
      { class: "part", "aria-label": "Feedback" },
      el("h2", { text: "Feedback and learning" }),
      el(
        "p",
        { "data-testid": "n-feedback" },
        `${plural(model.n_feedback, "text")} with feedback. Inbox: ${inbox(model.n_inbox)}.`,
      ),
      this.#hint(may),
      el("div", { class: "row" }, this.learn, this.reload),
      this.step,
      this.bar,
      this.result,
    );
    this.#resume();
  }

  #hint(may) {
    if (!may) return el("p", { class: "soft", text: store.readOnly });
    const text = this.model.can_learn
      ? "A new model is trained on the data and the feedback. It replaces this one if it is no worse on held-out documents."
      : "Learning needs the training data: start the server with --data.";
    return el("p", { class: "soft", text });
  }

  // After a reload, the page finds a job that is still running.
  async #resume() {
    try {
      const { jobs } = await api.jobs();
      const own = jobs.filter((job) => job.model === this.model.id && job.kind === "learn");
      const running = own.find((job) => !ENDED.includes(job.state));
      if (running) await this.follow(running);
      else if (own.length) this.#show(own.reduce((last, job) => (job.created > last.created ? job : last)));
    } catch (error) {
      notifyError(error, "The jobs could not be read");
    }
  }

  async start() {
    this.learn.disabled = true;
    this.result.replaceChildren();
    try {
      await this.follow(await api.learn(this.model.id));
    } catch (error) {
      notifyError(error, "Learning did not start");
    }
    this.learn.disabled = false;
  }

  async follow(job) {
    this.learn.disabled = true;
    let now = job;
    for (;;) {
      this.#show(now);
      if (ENDED.includes(now.state)) break;
      await new Promise((resolve) => setTimeout(resolve, POLL_PAUSE));
      if (this.signal.aborted || !this.node.isConnected) return;
      now = await api.job(job.id);
    }
    this.learn.disabled = false;
    if (now.result?.swapped) {
      notify("The new model is now in use.");
      await this.onNewModel();
    }
  }

  #show(job) {
    const isRunning = !ENDED.includes(job.state);
    this.bar.hidden = !isRunning;
    setGauge(this.fill, job.progress);
    this.bar.setAttribute("aria-valuenow", String(Math.round(100 * job.progress)));
    this.step.hidden = !isRunning && job.state !== "failed";
    const hasFailed = job.state === "failed";
    const why = sentence(job.error ?? "the log of the server says why");
    this.step.textContent = hasFailed ? `Learning failed: ${why}` : `Learning: ${job.step || job.state} …`;
    this.step.classList.toggle("wrong", hasFailed);
    if (job.state === "done" && job.result) this.result.replaceChildren(...resultOf(job.result));
  }

  async readAgain() {
    this.reload.disabled = true;
    try {
      const { changed, version } = await api.reload(this.model.id);
      notify(changed ? `Version ${version} is now in use.` : "The version in the folder is already in use.");
      if (changed) await this.onNewModel();
    } catch (error) {
      notifyError(error, "The model was not reloaded");
    }
    this.reload.disabled = false;
  }
}

const inbox = ({ pending, done, skipped }) =>
  `${count(pending)} to review, ${count(done)} done, ${count(skipped)} skipped`;

function resultOf(result) {
  const { swapped, reason, current = {}, candidate = {}, held_out: held } = result;
  const metrics = SHOWN.filter((metric) => metric in current && metric in candidate);
  const rows = metrics.map((metric) => [metric, figure(current[metric]), figure(candidate[metric])]);
  const from = held ? ` Compared on ${plural(held.n, "document")} of ${held.from}.` : "";
  return [
    el(
      "p",
      {},
      el("b", { text: swapped ? "The new model is in use. " : "The old model stays in use. " }),
      `${ended(String(reason ?? ""))}${from}`,
    ),
    table({ head: ["", "before", "new"], rows, areNumbers: true }),
  ];
}
