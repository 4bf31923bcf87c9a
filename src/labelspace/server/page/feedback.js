// Sends the decisions on a text to the server, and withdraws them.

import { api } from "./api.js";
import { button, el } from "./dom.js";
import { randomId } from "./download.js";
import { icon } from "./icons.js";
import { notifyError, sentence } from "./notices.js";
import { store } from "./store.js";

/** Stores the decisions of a session; resolves with the id of the feedback, which makes a second try safe. */
export async function sendFeedback(session, document = null) {
  const entry = { id: randomId(), ...session.feedback(), ...(document ? { document } : {}) };
  try {
    await api.sendFeedback(store.model.id, [entry]);
  } catch (error) {
    if (error.status === 403) store.refuseWriting(sentence(error.message));
    throw error;
  }
  return entry.id;
}

/** "3 accepted, 1 rejected". */
export function decidedInWords(session) {
  const { accepted, rejected, added } = session.feedback();
  const parts = [[accepted, "accepted"], [rejected, "rejected"], [added, "added"]];
  return parts.filter(([labels]) => labels.length).map(([labels, word]) => `${labels.length} ${word}`).join(", ");
}

/** The button that sends feedback, with what was saved and a button to undo it. */
export class FeedbackButton {
  constructor(session) {
    this.session = session;
    this.saved = null; // {id, text, decisions} of what was sent last
    this.send = button(
      "Send feedback",
      { class: "button is-main", "data-testid": "save", onclick: () => this.save() },
      "S",
    );
    this.said = el("span", { class: "saved", role: "status", "data-testid": "saved" });
    this.undo = el("button", {
      type: "button",
      class: "link",
      text: "Undo",
      "data-testid": "undo",
      hidden: true,
      onclick: () => this.withdraw(),
    });
    this.refused = el("p", { class: "soft", "data-testid": "read-only", hidden: true });
    this.nodes = [this.said, this.undo, this.refused, this.send];
  }

  update() {
    const words = decidedInWords(this.session);
    const isSaved = this.saved?.key === this.#key();
    const hadFocus = document.activeElement === this.send;
    this.send.hidden = isSaved || Boolean(store.readOnly);
    this.refused.hidden = !store.readOnly || !words;
    this.refused.textContent = store.readOnly ? `${store.readOnly} Choices are not stored.` : "";
    this.send.disabled = !words || this.isSending;
    this.send.title = words || "Accept, reject or add a label first";
    this.undo.hidden = !isSaved;
    if (isSaved && hadFocus) this.undo.focus();
    this.said.replaceChildren(...(isSaved ? [icon("accept"), `Saved: ${words}.`] : []));
  }

  #key() {
    return JSON.stringify([store.model.id, this.session.feedback()]);
  }

  async save() {
    if (this.send.hidden || this.send.disabled) return;
    const before = this.saved;
    const [key, text] = [this.#key(), this.session.text];
    this.isSending = true;
    this.update();
    try {
      const id = await sendFeedback(this.session);
      // New choices for the same text replace the ones sent before.
      const isReplaced = before?.text === text && before.model === store.model.id;
      if (isReplaced) await api.withdrawFeedback(store.model.id, before.id);
      this.saved = { id, key, text, model: store.model.id };
    } catch (error) {
      notifyError(error, "Feedback was not saved");
    }
    this.isSending = false;
    this.update();
  }

  async withdraw() {
    try {
      await api.withdrawFeedback(this.saved.model, this.saved.id);
      this.saved = null;
    } catch (error) {
      notifyError(error, "Feedback was not withdrawn");
    }
    this.update();
    this.send.focus();
  }
}
