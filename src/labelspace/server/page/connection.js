// Shows when the server does not answer, polls it until it does, and lets requests wait.

const FIRST_WAIT = 1000; // milliseconds; doubled up to the longest
const LONGEST_WAIT = 5000;

let waiting = null;

export const pause = (ms, signal) =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
  });

/** Resolves when the server answers again; all waiting requests share one poll. */
export function serverIsBack(base) {
  waiting ??= ask(base).finally(() => {
    waiting = null;
  });
  return waiting;
}

async function ask(base) {
  const banner = document.getElementById("offline");
  banner.hidden = false;
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    await pause(wait);
    try {
      await fetch(new URL("livez", base), { cache: "no-store" });
      banner.hidden = true;
      return;
    } catch {
      // Still gone.
    }
  }
}
