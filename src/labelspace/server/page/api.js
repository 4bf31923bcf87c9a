// The HTTP API: one function for each request, readable errors, and retries while the server is busy.

import { pause, serverIsBack } from "./connection.js";
import { keepSecret, secret } from "./storage.js";

// Relative to the page, so that it works behind a proxy that serves it under a path.
export const base = new URL("./", document.baseURI);
const WHILE_LOADING = 1000; // retries while the server loads its models
const LONGEST_WAIT = 60; // seconds that a server may ask to wait

/** An error that the server answered (RFC 9457). */
export class Problem extends Error {
  constructor(status, detail, retryAfter = null) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

let askForKey = null;
/** The function that asks the user for an API key; it resolves with the key, or null. */
export const setKeyDialog = (ask) => {
  askForKey = ask;
};

/**
 * @param {string} method
 * @param {string} path relative to the server, such as "v1/models"
 * @param {{body?: any, query?: Object<string, any>, signal?: AbortSignal, retries?: number}} [options]
 */
export async function request(method, path, options = {}) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await once(method, path, options);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (!(await isWorthAnotherTry(error, attempt, options))) throw error;
    }
  }
}

async function isWorthAnotherTry(problem, attempt, { signal, retries = 2 }) {
  if (problem.status === 0) {
    await Promise.race([serverIsBack(base), aborted(signal)]);
    return true;
  }
  if (problem.status === 401 && askForKey) {
    const key = await askForKey(Boolean(secret("key")), problem.message);
    if (key) keepSecret("key", key);
    return Boolean(key);
  }
  const isBusy = problem.status === 429 || problem.status === 503;
  if (!isBusy || attempt >= retries) return false;
  await pause(1000 * Math.min(problem.retryAfter ?? 2 ** attempt, LONGEST_WAIT), signal);
  return true;
}

const aborted = (signal) =>
  new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

async function once(method, path, { body, query, signal }) {
  const url = new URL(path, base);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  let response;
  try {
    response = await fetch(url, {
      method,
      headers: headers(body !== undefined),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "the server does not answer");
  }
  return answer(response);
}

/** The headers of a request, with the key if there is one. */
export function headers(hasBody) {
  const key = secret("key");
  return {
    ...(hasBody ? { "Content-Type": "application/json" } : {}),
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
  };
}

async function answer(response) {
  const text = await response.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    // A proxy may answer with a page; its status says enough.
  }
  if (response.ok) return value;
  const wait = Number.parseFloat(response.headers.get("Retry-After"));
  const said = typeof value?.detail === "string" ? value.detail : `the server answered ${response.status}`;
  throw new Problem(response.status, said, Number.isNaN(wait) ? null : wait);
}

const of = (model) => `v1/models/${encodeURIComponent(model)}`;
const labelOf = (model, label) => `${of(model)}/labels/${encodeURIComponent(label)}`;
const get = (path, query, signal, retries) => request("GET", path, { query, signal, retries });
const post = (path, body, signal, retries) => request("POST", path, { body, signal, retries });

export const api = {
  server: () => get("v1", {}, null, WHILE_LOADING),
  models: () => get("v1/models", {}, null, WHILE_LOADING),
  model: (m) => get(of(m)),
  figures: (m) => get(`${of(m)}/figures`),
  mapPage: (m) => fetch(new URL(`${of(m)}/map`, base), { headers: headers(false) }),
  mapUrl: (m) => new URL(`${of(m)}/map`, base).href,
  suggest: (m, body, signal) => post(`${of(m)}/suggest`, body, signal),
  suggestBatch: (m, body, signal, retries) => post(`${of(m)}/suggest-batch`, body, signal, retries),
  explain: (m, body, signal) => post(`${of(m)}/explain`, body, signal),
  labels: (m, query, signal) => get(`${of(m)}/labels`, query, signal),
  label: (m, label, signal) => get(labelOf(m, label), {}, signal),
  tree: (m, query) => get(`${of(m)}/tree`, query),
  sendFeedback: (m, entries) => post(`${of(m)}/feedback`, entries),
  withdrawFeedback: (m, id) => request("DELETE", `${of(m)}/feedback/${encodeURIComponent(id)}`),
  addLabel: (m, body) => post(`${of(m)}/labels`, body),
  changeLabel: (m, label, body) => request("PATCH", labelOf(m, label), { body }),
  retireLabel: (m, label) => request("DELETE", labelOf(m, label)),
  mergeLabel: (m, label, into) => post(`${labelOf(m, label)}/merge`, { into }),
  learn: (m, body) => post(`${of(m)}/learn`, body),
  versions: (m) => get(`${of(m)}/versions`),
  rollback: (m, to) => post(`${of(m)}/rollback`, { to }),
  jobs: () => get("v1/jobs"),
  job: (id) => get(`v1/jobs/${encodeURIComponent(id)}`),
  reload: (m) => post(`${of(m)}/reload`),
  review: (m, order, n) => get(`${of(m)}/review`, { order, n }),
  addToReview: (m, documents, signal, retries) => post(`${of(m)}/review`, { documents }, signal, retries),
  setReview: (m, id, status) => post(`${of(m)}/review/${encodeURIComponent(id)}`, { status }),
};
