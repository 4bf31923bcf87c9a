// Numbers, sizes and times as people read them.

const THIN = "\u202f"; // narrow no-break space: a number and its unit stay on one line

export const count = (n) => Number(n).toLocaleString("en");

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** A share between 0 and 1 in percent; small ones keep a digit, and nothing uncertain is shown as 100 %. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return `<${THIN}0.1${THIN}%`;
  if (value < 1) return `${value.toFixed(1)}${THIN}%`;
  return `${value > 99 && value < 100 ? "> 99".replace(" ", THIN) : Math.round(value)}${THIN}%`;
}

/** The certainty of a suggestion: a probability, or the bare score where the method is not calibrated. */
export const certainty = ({ probability, score }) => (probability === null ? bare(score) : percent(probability));

const bare = (score) => (score > 0 && score < 0.005 ? `<${THIN}0.01` : score.toFixed(2));

export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

export const figure = (value) => (typeof value === "number" ? value.toFixed(2) : String(value));

export function bytes(n) {
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (n >= size) return `${(n / size).toFixed(n < 10 * size ? 1 : 0)}${THIN}${unit}`;
  }
  return `${n}${THIN}bytes`;
}

export function milliseconds(ms) {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))}${THIN}ms` : `${(ms / 1000).toFixed(1)}${THIN}s`;
}

export function duration(seconds) {
  if (seconds < 60) return plural(Math.max(1, Math.round(seconds)), "second");
  return plural(Math.round(seconds / 60), "minute");
}

export function date(iso) {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return String(iso);
  return time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
