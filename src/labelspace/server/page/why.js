// Why a label: the words, the names found in the text, the members of the ensemble, similar documents.

import { el, gauge, name, pathNode, shown } from "./dom.js";
import { certainty, percent, plural, signed } from "./format.js";
import { icon } from "./icons.js";
import { sentence } from "./notices.js";
import { store } from "./store.js";

const WORDS = 8; // that are listed
const LEAST = 0.02; // of the largest share: less is not worth a line
const CLIPPED = 220; // characters that are shown of a description, and of a similar document
const KINDS = { name: "in its name", synonym: "in a synonym of it", part: "in a part of a name of it" };

export class WhyPane {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    this.body = el("div", { class: "why-body" });
    this.node = el(
      "section",
      { class: "pane why-pane", "aria-label": "Why this label", "data-testid": "why", tabindex: "0" },
      this.body,
    );
    this.label = null;
    this.clear();
  }

  clear() {
    this.label = null;
    this.body.replaceChildren(el("p", {
      class: "empty",
      text: "The reasons for a label appear here: words, methods, similar documents.",
    }));
  }

  /** Shows a label, and its explanation when that is there. */
  async show(label) {
    const isSame = this.label?.label === label.label;
    this.label = label;
    const facts = factsOf(label);
    const parts = el("div", { class: "why-parts" });
    // What was shown of the same label stays until its news are there, so that typing does not flicker.
    if (isSame) parts.append(...(this.body.querySelector(".why-parts")?.childNodes ?? []));
    this.body.replaceChildren(...[heading(label), description(label), facts, parts].filter(Boolean));
    if (!store.model.explains) {
      parts.replaceChildren(el("p", { class: "soft", text: "The method of this model cannot explain its labels." }));
      return;
    }
    try {
      const explanation = await this.session.explain(label.label);
      if (this.label === label) parts.replaceChildren(...partsOf(explanation, label));
    } catch (error) {
      if (this.label === label && error.name !== "AbortError") {
        parts.replaceChildren(el("p", { class: "soft", text: sentence(error.message) }));
      }
    }
  }
}

function heading(label) {
  return el(
    "header",
    { class: "why-head" },
    label.path.length > 0 && pathNode(label.path),
    el("h2", {}, name(label.name)),
    label.synonym && name(label.synonym, { class: "synonym" }),
  );
}

function description(label) {
  if (!label.description) return null;
  const node = clipped(label.description, "why-description");
  node.dataset.testid = "why-description";
  return node;
}

function factsOf(label) {
  const facts = el("p", { class: "facts" });
  if (label.score !== undefined) {
    const kind = label.probability === null ? "score" : "probability";
    facts.append(el("span", {}, `${kind} `, el("b", { text: certainty(label) })));
  }
  facts.append(el("span", { text: `${plural(label.count, "training document")}` }));
  if (label.uri) facts.append(uriNode(label.uri));
  return facts;
}

/** A web address as a link; other URIs could run a script, so they stay text. */
function uriNode(uri) {
  if (!/^https?:\/\//i.test(uri)) return name(uri, { class: "uri" });
  return el(
    "a",
    { href: uri, class: "uri", target: "_blank", rel: "noopener noreferrer" },
    name(uri),
    icon("external"),
  );
}

function partsOf(explanation, label) {
  return [
    part("Words", words(explanation)),
    part("Named in the text", phrases(explanation)),
    part("Methods", members(explanation)),
    part("Similar documents", neighbors(explanation)),
    part("Way through the model's tree", path(explanation)),
    el("p", { class: "footnote", text: footnote(explanation, label) }),
  ].filter(Boolean);
}

function part(title, content) {
  return content && el("section", { class: "why-part" }, el("h3", { text: title }), content);
}

function footnote({ remainder, log_odds: odds, baseline }) {
  return (
    `Shares are log-odds. The words and the rest (${signed(remainder)}) add up to ${signed(odds - baseline)}: ` +
    `from ${signed(baseline)} for a text that says nothing to ${signed(odds)}.`
  );
}

/** Returns each word once, the most important first. */
function words({ words: all }) {
  const merged = new Map();
  for (const { text, share } of all) {
    const key = text.toLowerCase();
    merged.set(key, { text: merged.get(key)?.text ?? text, share: (merged.get(key)?.share ?? 0) + share });
  }
  const size = (word) => Math.abs(word.share);
  const ranked = [...merged.values()].sort((a, b) => size(b) - size(a)).slice(0, WORDS);
  const listed = ranked.filter((word) => size(word) >= LEAST * size(ranked[0]));
  return listed.length ? shares(listed.map((word) => [name(word.text), word.share])) : null;
}

/** Lines of a name and a share, with bars on one scale. */
function shares(lines) {
  const largest = Math.max(...lines.map(([, share]) => Math.abs(share))) || 1;
  return el(
    "ul",
    { class: "shares" },
    ...lines.map(([node, share, hint]) =>
      el(
        "li",
        {},
        el("span", { class: "share-name" }, node, hint && el("small", { text: hint })),
        gauge(Math.abs(share) / largest, share < 0 ? "is-against" : "is-for"),
        el("span", { class: "share-number", text: signed(share) }),
      ),
    ),
  );
}

function phrases({ phrases: found }) {
  if (!found.length) return null;
  const once = new Map(found.map((phrase) => [`${phrase.text.toLowerCase()} ${phrase.kind}`, phrase]));
  return el("ul", { class: "phrases" }, ...[...once.values()].map((phrase) =>
    el("li", {}, el("q", {}, name(phrase.text)), ` ${KINDS[phrase.kind] ?? shown(phrase.kind)}`)));
}

function members({ members: all }) {
  if (!all.length) return null;
  const ranked = [...all].sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  return shares(ranked.map(({ name: member, share, score, rank }) => {
    const said = [
      typeof score === "number" && `score ${score.toFixed(2)}`,
      rank && `rank ${rank}`,
    ].filter(Boolean).join(", ");
    return [name(member), share, said];
  }));
}

function neighbors({ neighbors: found }) {
  if (!found.length) return null;
  return el("ul", { class: "neighbors" }, ...found.map((document) =>
    el(
      "li",
      {},
      el(
        "p",
        { class: "neighbor-head" },
        name(document.id, { class: "document-id" }),
        el("span", { class: "soft", text: `${percent(document.similarity)} alike` }),
        el("span", { class: "soft", text: signed(document.share) }),
      ),
      document.text && clipped(document.text, "neighbor-text"),
      document.words.length > 0 && el("p", { class: "soft" }, "shares ", ...joined(document.words)),
    )));
}

/** A text; a long one is cut, with a button for the rest. */
function clipped(given, kind) {
  const text = shown(given);
  const node = el("p", { class: kind, dir: "auto", text });
  if (text.length <= CLIPPED) return node;
  node.textContent = `${text.slice(0, CLIPPED)}… `;
  const showAll = () => node.replaceChildren(text);
  node.append(el("button", { type: "button", class: "link", text: "more", onclick: showAll }));
  return node;
}

function joined(texts) {
  return texts.flatMap((text, at) => (at ? [", ", name(text)] : [name(text)]));
}

function path({ path: steps }) {
  if (!steps.length) return null;
  return el("ol", { class: "tree-path" }, ...steps.map((step) => {
    const more = step.n_labels - step.labels.length;
    return el(
      "li",
      {},
      ...joined(step.labels),
      more > 0 && ` and ${more.toLocaleString("en")} more`,
      el("span", { class: "soft", text: ` ${percent(step.probability)}` }),
    );
  }));
}
