// Stored feedback, and learning from it: a job on the server, followed until it ends.

import { api } from "./api.js";
import { button, el, setGauge } from "./dom.js";
import { count, figure, plural } from "./format.js";
import { follow, hasEnded, lastJob } from "./jobs.js";
import { ended, notify, notifyError, sentence } from "./notices.js";
import { store } from "./store.js";
import { table } from "./table.js";

const SHOWN = ["nDCG@5", "nDCG@3", "P@1", "P@3", "P@5", "PSP@5", "R@5"];
const GOES_ON = "The model goes on learning from what is new. The new version is used unless it is worse on held-out " +
  "documents.";
const TRAINS = "A new model is trained on the data and all feedback. It is used if it is no worse on held-out " +
  "documents.";
const CANNOT = "This method cannot go on learning, and a training needs the data: start the server with --data.";

export class Learning {
  /** @param {Object} model @param {AbortSignal} signal @param {(focus: string) => Promise<void>} onNewModel */
  constructor(model, signal, onNewModel) {
    Object.assign(this, { model, signal, onNewModel });
    this.learn = button("Learn from feedback", {
      class: "button is-main",
      "data-testid": "learn",
      onclick: () => this.start({}),
    });
    this.train = button("Train again from scratch", {
      "data-testid": "train",
      title: TRAINS,
      onclick: () => this.start({ full: true }),
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
    this.result = el("div", { class: "stack", "data-testid": "job-result" });
    const may = !store.readOnly;
    this.learn.hidden = !may || !model.can_learn;
    this.train.hidden = !may || !model.can_train;
    this.reload.hidden = !may;
    this.node = el(
      "section",
      { class: "part", "aria-label": "Feedback", "data-testid": "learning", tabindex: "-1" },
      el("h2", { text: "Feedback and learning" }),
      el("p", { "data-testid": "n-feedback" }, `${feedback(model)} Inbox: ${inbox(model.n_inbox)}.`),
      el("p", { class: "soft", text: may ? (model.can_learn ? GOES_ON : CANNOT) : store.readOnly }),
      el("div", { class: "row" }, this.learn, this.train, this.reload),
      this.step,
      this.bar,
      this.result,
    );
    this.#resume();
  }

  // After a reload, the page finds a job that is still running.
  async #resume() {
    try {
      const job = await lastJob(this.model.id, "learn");
      if (!job) return;
      if (hasEnded(job)) this.#show(job);
      else await this.#follow(job);
    } catch (error) {
      notifyError(error, "The jobs could not be read");
    }
  }

  async start(body) {
    this.#setBusy(true);
    this.result.replaceChildren();
    try {
      await this.#follow(await api.learn(this.model.id, body));
    } catch (error) {
      notifyError(error, "Learning did not start");
      this.#setBusy(false);
    }
  }

  #setBusy(isBusy) {
    this.learn.disabled = isBusy;
    this.train.disabled = isBusy;
  }

  async #follow(job) {
    this.#setBusy(true);
    const last = await follow(job, { signal: this.signal, onStep: (now) => this.#show(now) });
    if (!last || !this.node.isConnected) return;
    this.#setBusy(false);
    if (!last.result?.swapped) return;
    await api.reload(this.model.id); // else the server notices the new version within a second or two
    notify("The new version is now in use.");
    await this.onNewModel("learning");
  }

  #show(job) {
    const isRunning = !hasEnded(job);
    this.bar.hidden = !isRunning;
    setGauge(this.fill, job.progress);
    this.bar.setAttribute("aria-valuenow", String(Math.round(100 * job.progress)));
    const hasFailed = job.state === "failed";
    this.step.hidden = !isRunning && !hasFailed;
    const why = sentence(job.error ?? "the log of the server says why");
    this.step.textContent = hasFailed ? `Learning failed: ${why}` : `Learning: ${job.step || job.state} …`;
    this.step.classList.toggle("wrong", hasFailed);
    if (job.state === "done" && job.result) this.result.replaceChildren(...this.#resultOf(job.result));
  }

  #resultOf(result) {
    const { swapped, refused, mode, reason, version, current = {}, candidate = {}, held_out: held } = result;
    const metrics = SHOWN.filter((metric) => metric in current && metric in candidate);
    const rows = metrics.map((metric) => [metric, figure(current[metric]), figure(candidate[metric])]);
    const from = held && mode === "full" ? ` Compared on ${plural(held.n, "document")} of ${held.from}.` : "";
    const kept = refused === false ? "Nothing was learned. " : "The new version was refused. ";
    const made = version ? `Version ${version} was learned. ` : "A new model was learned. ";
    const insist = refused && !store.readOnly && button("Use it all the same", {
      "data-testid": "insist",
      onclick: () => this.start({ full: mode === "full", force: true }),
    });
    return [
      el(
        "p",
        {},
        el("b", { text: swapped ? made : kept }),
        `${ended(String(reason ?? ""))}${from}`,
      ),
      ...(rows.length > 1 ? [table({ head: ["", "before", "new"], rows, areNumbers: true })] : []),
      ...(insist ? [el("div", { class: "row" }, insist)] : []),
    ];
  }

  async readAgain() {
    this.reload.disabled = true;
    try {
      const { changed, version } = await api.reload(this.model.id);
      notify(changed ? `Version ${version} is now in use.` : "The version in the folder is already in use.");
      if (changed) await this.onNewModel("learning");
    } catch (error) {
      notifyError(error, "The model was not reloaded");
    }
    this.reload.disabled = false;
  }
}

function feedback({ n_feedback: n, n_new_feedback: added }) {
  const stored = `${plural(n, "decision")} stored`;
  if (!n) return `${stored}.`;
  return added ? `${stored}, ${count(added)} of them not learned yet.` : `${stored}, all learned.`;
}

const inbox = ({ pending, done, skipped }) =>
  `${count(pending)} to review, ${count(done)} done, ${count(skipped)} skipped`;
