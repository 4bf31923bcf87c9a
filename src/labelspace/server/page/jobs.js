// Jobs on the server, such as learning: they are followed until they end, also after the page was loaded again.

import { api } from "./api.js";

const POLL_PAUSE = 1000; // milliseconds
const ENDED = ["done", "failed"];

export const hasEnded = (job) => ENDED.includes(job.state);

/**
 * Follows a job; resolves with it when it has ended, or with null once the view is left.
 * @param {Object} job @param {{signal: AbortSignal, onStep: (job: Object) => void}} options
 */
export async function follow(job, { signal, onStep }) {
  let now = job;
  for (;;) {
    onStep(now);
    if (hasEnded(now)) return now;
    await new Promise((resolve) => setTimeout(resolve, POLL_PAUSE));
    if (signal.aborted) return null;
    now = await api.job(job.id);
  }
}

/** The newest job of a kind for a model, or null. */
export async function lastJob(model, kind) {
  const { jobs } = await api.jobs();
  const own = jobs.filter((job) => job.model === model && job.kind === kind);
  const running = own.find((job) => !hasEnded(job));
  return running ?? own.reduce((last, job) => (!last || job.created > last.created ? job : last), null);
}
