// Tag: a text of one's own.

import { el } from "./dom.js";
import { FeedbackButton } from "./feedback.js";
import { bindKeys } from "./keys.js";
import { notify } from "./notices.js";
import { Session } from "./session.js";
import { store } from "./store.js";
import { Workbench } from "./workbench.js";

const OTHER_TEXT = 0.3; // share of the text before; if less is left, it is a different text

// Outlives the view, so that nothing is lost when the user looks at another view.
const session = new Session();
const feedback = new FeedbackButton(session);

/** Whether pasting or clearing left next to nothing of the text before. */
export function isOtherText(before, after) {
  const longest = Math.min(before.length, after.length);
  let start = 0;
  while (start < longest && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < longest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return start + end < OTHER_TEXT * before.length;
}

// Choices for one text must not be sent with a different text.
function takeText(text, event) {
  const before = session.text;
  const isReplaced = !text || ["insertFromPaste", "insertFromDrop", "insertReplacementText"].includes(event?.inputType);
  if (before && session.decisions.size && isReplaced && isOtherText(before, text)) {
    const kept = [...session.decisions];
    session.restore([]);
    notify("This is a different text: the choices for the text before were cleared.", {
      action: { text: "Bring them back", run: () => session.restore(kept) },
    });
  }
  session.setText(text, { now: event?.inputType === "insertFromPaste" });
}

export function show(main, signal) {
  const clear = () => {
    workbench.text.value = "";
    takeText("");
    workbench.text.area.focus();
  };
  const workbench = new Workbench({ session, signal, onInput: takeText, onClear: clear, actions: feedback.nodes });
  const update = () => feedback.update();
  session.addEventListener("decisions", update, { signal });
  session.addEventListener("text", update, { signal });
  store.on("writing", update, signal);
  store.on("model", () => {
    session.forgetModel();
    workbench.refresh();
    session.suggest();
    update();
  }, signal);
  bindKeys("Tag", [
    { keys: ["s"], shown: "S", text: "Send feedback", run: () => feedback.save() },
    { keys: ["Ctrl+s"], shown: "Ctrl S", text: "Send feedback", inText: true, run: () => feedback.save() },
    { keys: ["u"], shown: "U", text: "Undo the feedback", run: () => !feedback.undo.hidden && feedback.withdraw() },
  ], signal);
  update();
  main.replaceChildren(el("h1", { class: "visually-hidden", text: "Tag a text" }), workbench.node);
  // A phone would open its keyboard over the page.
  if (!session.text && matchMedia("(min-width: 900px) and (hover: hover)").matches) workbench.text.area.focus();
}
