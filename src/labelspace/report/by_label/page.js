"use strict";
// Shows the labels of an evaluation: searches, sorts and pages through columns of numbers. Texts are never markup.
(async () => {
  const PAGE = 50;
  const by = (id) => document.getElementById(id);
  const packed = Uint8Array.from(atob(by("label-data").textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = JSON.parse(await new Response(unpacked).text());
  const size = data.n.length, every = [...Array(size).keys()];
  const share = (part, total) => (total ? (100 * part) / total : null);
  const wrong = every.map((i) => data.answered[i] - data.right[i]), missed = every.map((i) => data.n[i] - data.right[i]);
  const number = (value) => value.toLocaleString("en"), percent = (value) => value.toFixed(1);
  const columns = [
    ["label", data.names, String],
    ["n", data.n, number],
    ["training", data.training, number],
    ["errors", every.map((i) => wrong[i] + missed[i]), number],
    ["precision", every.map((i) => share(data.right[i], data.answered[i])), percent],
    ["recall", every.map((i) => share(data.right[i], data.n[i])), percent],
    ["F1", every.map((i) => share(2 * data.right[i], data.n[i] + data.answered[i])), percent],
    ["avg. precision", data.ap, percent],
    ["best F1", data.bestF1, percent],
    ["at threshold", data.threshold, (value) => value.toFixed(3)],
  ];
  const lower = data.names.map((name) => name.toLowerCase());
  const open = new Set();
  let sorted = every, rising = true, by_column = null, shown = every, page = 0;

  const make = (tag, said, ...children) => {
    const node = document.createElement(tag);
    if (said !== null) node.textContent = said;
    node.append(...children);
    return node;
  };
  const button = (said, action) => {
    const node = make("button", said);
    node.type = "button";
    node.addEventListener("click", action);
    return node;
  };

  // Which entries have a label above them, or are one, whose name contains a text.
  const under = (text) => {
    const known = new Int8Array(data.names.length).fill(-1);
    const find = (i) => {
      if (known[i] < 0) known[i] = lower[i].includes(text) || [data.parents[i]].flat().some(find) ? 1 : 0;
      return known[i] === 1;
    };
    return find;
  };
  const given = (name) => (by(`label-${name}`)?.value ?? "").trim().toLowerCase();

  function filter() {
    const text = given("search"), above = given("branch"), most = given("most"), least = Number(given("least"));
    const isUnder = above ? under(above) : () => true, largest = most === "" ? Infinity : Number(most);
    shown = sorted.filter((i) => data.n[i] >= least && data.n[i] <= largest && lower[i].includes(text) && isUnder(i));
    page = 0;
    draw();
  }

  function sort(at) {
    rising = by_column === at ? !rising : at === 0;
    by_column = at;
    const values = columns[at][1], sign = rising ? 1 : -1;
    const compare = at ? (a, b) => values[a] - values[b] : (a, b) => values[a].localeCompare(values[b]);
    const known = every.filter((i) => values[i] !== null), rest = every.filter((i) => values[i] === null);
    sorted = [...known.sort((a, b) => sign * compare(a, b)), ...rest];
    [...by("label-table").tHead.rows[0].cells].forEach((cell, i) => {
      if (i === at) cell.setAttribute("aria-sort", rising ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    });
    filter();
  }

  const confused = (pairs) => {
    const parts = [];
    for (let i = 0; i < pairs.length; i += 2) parts.push(`${data.names[pairs[i]]} (${number(pairs[i + 1])})`);
    return parts.join(", ");
  };
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

  function example(label, [id, text, score, right, answered]) {
    const node = make("blockquote", null, make("p", text || `document ${id}`));
    const known = score === null ? "not among the labels that were ranked" : `score ${score}`;
    node.append(make("p", `${known}; has ${right || "no label"}; answered ${answered || "nothing"}`));
    if (data.command) node.append(make("code", `${data.command} --label ${quoted(label)} -- ${quoted(id)}`));
    return node;
  }

  function details(i) {
    const inner = make("div", `${number(missed[i])} missed, ${number(wrong[i])} wrong of ${number(data.answered[i])} answered.`);
    const line = (title, said) => said && inner.append(make("p", null, make("b", `${title}: `), said));
    if (i < data.instead.length) {
      line("Given instead, where it was missed", confused(data.instead[i]));
      line("Missing beside, where it was wrong", confused(data.beside[i]));
    }
    if (i < data.details.length) {
      const [name, words, positives, negatives] = data.details[i];
      line("Telling words", words.join(", "));
      for (const [title, some] of [["Wrong answers", positives], ["Missed documents", negatives]]) {
        if (some.length) inner.append(make("h4", title), ...some.map((each) => example(name, each)));
      }
    }
    const cell = make("td", null, inner);
    cell.className = "details";
    cell.colSpan = columns.length;
    return make("tr", null, cell);
  }

  function row(i) {
    const toggle = button(data.names[i], () => {
      if (!open.delete(i)) open.add(i);
      draw();
      document.querySelector(`[data-row="${i}"]`).focus();
    });
    toggle.dataset.row = i;
    toggle.setAttribute("aria-expanded", open.has(i));
    const figures = columns.slice(1).map(([, values, shape]) => make("td", values[i] === null ? "" : shape(values[i])));
    const rows = [make("tr", null, make("td", null, toggle), ...figures)];
    return open.has(i) ? [...rows, details(i)] : rows;
  }

  function draw() {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    by("label-count").textContent = `${number(shown.length)} of ${number(size)} labels`;
    by("label-table").tBodies[0].replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).flatMap(row));
    const turn = (said, to, able) => {
      const node = button(said, () => { page = to; draw(); });
      node.disabled = !able;
      return node;
    };
    by("label-pages").replaceChildren(
      turn("Previous", page - 1, page > 0), make("span", `page ${number(page + 1)} of ${number(last + 1)}`),
      turn("Next", page + 1, page < last));
  }

  const headings = columns.map(([title], at) => {
    const heading = make("th", null, button(title, () => sort(at)));
    heading.scope = "col";
    return heading;
  });
  by("label-table").tHead.append(make("tr", null, ...headings));
  by("label-filter").addEventListener("input", filter);
  by("label-filter").addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
