// Reads CSV, TSV, JSONL and plain text files piece by piece: a file of any size, a piece in memory at a time.

const SNIFFED = 65536; // bytes that say which encoding a file has

/** @typedef {{kind: "table"|"jsonl"|"lines", delimiter?: string, encoding: string, columns: string[]}} Format */

/** The kind of a file by its name; ".gz" is unpacked. */
export function kindOf(fileName) {
  const plain = fileName.toLowerCase().replace(/\.gz$/, "");
  if (/\.(csv|tsv)$/.test(plain)) return "table";
  if (/\.(jsonl|ndjson|json)$/.test(plain)) return "jsonl";
  return "lines";
}

/** UTF-8 where the bytes are; UTF-16 by its mark; else what Windows and Excel write in the west. */
export function encodingOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }); // a cut character at the end is no fault
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

function unpacked(file) {
  const stream = file.stream();
  return file.name.toLowerCase().endsWith(".gz") ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
}

async function firstBytes(file) {
  const reader = unpacked(file).getReader();
  const parts = [];
  let size = 0;
  while (size < SNIFFED) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
  }
  await reader.cancel();
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function* pieces(file, encoding) {
  const reader = unpacked(file).pipeThrough(new TextDecoderStream(encoding)).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function* lines(source) {
  let rest = "";
  for await (const piece of source) {
    const found = (rest + piece).split(/\r\n|\n/);
    rest = found.pop();
    yield* found;
  }
  if (rest) yield rest;
}

/** The separator that the first line has most of, outside of quotes. */
export function delimiterOf(text) {
  const line = (text.match(/^(?:"(?:[^"]|"")*"|[^\r\n"])*/)?.[0] ?? "").replace(/"(?:[^"]|"")*"/g, "");
  const times = (sign) => line.split(sign).length;
  return [",", ";", "\t"].reduce((best, sign) => (times(sign) > times(best) ? sign : best));
}

/** Rows of a CSV file (RFC 4180): quoted cells may have separators, quotes and line ends. */
export async function* csvRows(source, delimiter) {
  let [row, cell, isQuoted, wasQuote] = [[], "", false, false];
  const isEmpty = () => row.length === 0 && cell === "";
  for await (const piece of source) {
    for (const sign of piece) {
      if (isQuoted) {
        if (sign !== '"') cell += sign;
        else [isQuoted, wasQuote] = [false, true];
        continue;
      }
      if (sign === '"' && (wasQuote || cell === "")) {
        if (wasQuote) cell += '"'; // two quotes in a quoted cell are one
        isQuoted = true;
      } else if (sign === delimiter) {
        row.push(cell);
        cell = "";
      } else if (sign === "\n") {
        if (!isEmpty()) yield [...row, cell];
        [row, cell] = [[], ""];
      } else if (sign !== "\r") cell += sign;
      wasQuote = false;
    }
  }
  if (!isEmpty()) yield [...row, cell];
}

/** Looks at the beginning of a file: its format, and its columns. @returns {Promise<Format>} */
export async function inspect(file) {
  const bytes = await firstBytes(file);
  const encoding = encodingOf(bytes);
  const text = new TextDecoder(encoding).decode(bytes, { stream: true });
  const format = { kind: kindOf(file.name), encoding, columns: [] };
  if (format.kind === "table") {
    format.delimiter = delimiterOf(text);
    const first = await csvRows([text], format.delimiter).next();
    format.columns = (first.value ?? []).map((cell, at) => cell.trim() || `column ${at + 1}`);
  } else if (format.kind === "jsonl") {
    const keys = text.split("\n").slice(0, 20).flatMap((line) => Object.keys(parsed(line) ?? {}));
    format.columns = [...new Set(keys)];
  }
  return format;
}

function parsed(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/**
 * The records of a file: values by column. A line that is no JSON object is an error that names the line.
 * @param {File} file @param {Format} format
 */
export async function* records(file, format) {
  const source = pieces(file, format.encoding);
  if (format.kind === "table") {
    let isFirst = true;
    for await (const row of csvRows(source, format.delimiter)) {
      if (!isFirst) yield Object.fromEntries(format.columns.map((column, at) => [column, row[at] ?? ""]));
      isFirst = false;
    }
    return;
  }
  let number = 0;
  for await (const line of lines(source)) {
    number += 1;
    if (!line.trim()) continue;
    if (format.kind === "lines") yield { text: line };
    else {
      const value = parsed(line);
      if (!value) throw new Error(
        `each line must be a JSON object, but line ${number} is not; mend it, or name the file .txt`,
      );
      yield value;
    }
  }
}
