// Reads an OpenAPI description: references, types in words, and examples made from schemas.

const DEEPEST = 6; // levels of an example; a schema may name itself

export class Description {
  constructor(document) {
    this.document = document;
  }

  /** Resolves a reference; other values are returned as they are. */
  resolve(thing) {
    if (!thing?.$ref) return thing ?? {};
    return thing.$ref.replace(/^#\//, "").split("/").reduce(
      (at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")],
      this.document,
    ) ?? {};
  }

  /** Operations by tag, in the order of the description. */
  groups() {
    const groups = new Map();
    for (const [path, methods] of Object.entries(this.document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        if (!operation.responses) continue; // what all methods of a path share
        const tag = operation.tags?.[0] ?? "other";
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push({ ...operation, method: method.toUpperCase(), path });
      }
    }
    return groups;
  }

  /** A schema with its parts resolved; of a union with null, the other part. */
  schemaOf(given) {
    const schema = this.resolve(given);
    const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf;
    if (!parts) return schema;
    const other = parts.map((part) => this.resolve(part)).find((part) => part.type !== "null") ?? {};
    return { ...other, ...schema, isNullable: parts.length > 1 };
  }

  typeOf(given) {
    const schema = this.schemaOf(given);
    const name = baseType(schema, () => this.typeOf(schema.items ?? {}));
    return schema.isNullable ? `${name} or null` : name;
  }

  /** The schema of the objects in a field, if any. */
  objectOf(given) {
    const schema = this.schemaOf(given);
    if (schema.type === "array") return this.objectOf(schema.items ?? {});
    return schema.properties ? schema : null;
  }

  /** The fields of an object, required ones first. */
  fieldsOf(schema) {
    const isOptional = ([name]) => Number(!schema.required?.includes(name));
    return Object.entries(schema.properties ?? {}).sort((a, b) => isOptional(a) - isOptional(b));
  }

  /** An example of a body, without fields that may be null or empty. */
  requestExample(given) {
    const isSaid = (value) => value !== null && !(Array.isArray(value) && !value.length);
    const bare = (value) => {
      if (Array.isArray(value)) return value.map(bare);
      if (value === null || typeof value !== "object") return value;
      return Object.fromEntries(Object.entries(value).filter(([, field]) => isSaid(field)).map(
        ([name, field]) => [name, bare(field)],
      ));
    };
    return bare(this.exampleOf(given));
  }

  exampleOf(given, depth = 0) {
    const schema = this.schemaOf(given);
    const said = schema.example ?? schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0];
    if (said !== undefined) return said;
    if (schema.isNullable || depth > DEEPEST) return null;
    if (schema.type === "array") return [this.exampleOf(schema.items ?? {}, depth + 1)];
    if (schema.properties) {
      const entries = this.fieldsOf(schema);
      return Object.fromEntries(entries.map(([name, field]) => [name, this.exampleOf(field, depth + 1)]));
    }
    return {
      string: "...",
      integer: schema.minimum ?? 0,
      number: schema.minimum ?? 0,
      boolean: false,
      object: {},
    }[schema.type] ?? null;
  }
}

function baseType(schema, ofItems) {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${ofItems()}`;
  return schema.title && schema.properties ? schema.title : (schema.type ?? "any");
}

/** The bounds of a value in words: "1 to 100". */
export function bounds(schema) {
  const [low, high] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const said = [];
  if (low !== undefined && high !== undefined) said.push(`${low} to ${high}`);
  else if (low !== undefined) said.push(`at least ${low}`);
  else if (high !== undefined) said.push(`at most ${high}`);
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength.toLocaleString("en")} characters`);
  if (schema.minItems !== undefined) said.push(`at least ${schema.minItems}`);
  if (schema.maxItems !== undefined) said.push(`at most ${schema.maxItems.toLocaleString("en")}`);
  return said.join(", ");
}
