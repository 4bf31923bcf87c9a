// Which column of a file is the text, and which one names a document: found by name, else by what is in them.

const TEXT_NAMES = ["text", "content", "body", "abstract", "description", "title", "question", "name"];
const ID_NAMES = [
  "id",
  "_id",
  "uid",
  "key",
  "identifier",
  "document",
  "doc_id",
  "document_id",
  "number",
  "no",
  "sku",
  "code",
];

const byName = (columns, names) => names.map((name) => columns.find(
  (column) => column.toLowerCase() === name,
)).find(Boolean);

/**
 * @param {string[]} columns
 * @param {Array<Object>} rows the first rows
 * @returns {{text: string, id: ?string, reason: string}}
 */
export function chooseColumns(columns, rows) {
  const id = byName(columns, ID_NAMES) ?? null;
  const named = byName(columns, TEXT_NAMES);
  if (named) return { text: named, id, reason: "by its name" };
  const length = (column) => rows.reduce((sum, row) => sum + textOf(row[column]).length, 0);
  const text = columns.filter((column) => column !== id).reduce(
    (best, column) => (best && length(best) >= length(column) ? best : column),
    null,
  );
  return { text: text ?? columns[0], id, reason: "it has the longest texts" };
}

/** A value as a text: lists are joined, what is missing is empty. */
function textOf(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(textOf).join(" ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A document of a row; without a column of ids it is named by its place. */
export function documentOf(row, columns, place) {
  const id = columns.id ? textOf(row[columns.id]) : String(place);
  return { id: id || String(place), text: textOf(row[columns.text]) };
}
