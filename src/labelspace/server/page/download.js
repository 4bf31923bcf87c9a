// Files and the clipboard.

// A spreadsheet runs a cell that begins with one of these as a formula; an apostrophe makes it text.
const FORMULA = /^[=+\-@\t\r]/;

/** A cell of a CSV file (RFC 4180); what a spreadsheet would run is made text. */
export function csvCell(value) {
  let text = String(value ?? "");
  if (typeof value === "string" && FORMULA.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvOf = (rows) => rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

/** @param {string|Blob} content */
export function download(fileName, content, type) {
  // Excel reads a CSV file as UTF-8 only with a byte order mark.
  const parts = type === "text/csv" ? ["\ufeff", content] : [content];
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileName;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Copies a text, also where the page is not from a secure origin and has no clipboard. */
export async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  if (!isDone) throw new Error("copying is not allowed here");
}

/** A random id, also where the page is not from a secure origin. */
export function randomId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
