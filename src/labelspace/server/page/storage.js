// Small settings of the browser; a browser that refuses to store them keeps them as long as the page.

const PREFIX = "labelspace.";

function access(kind, name, value) {
  try {
    const storage = kind === "session" ? sessionStorage : localStorage;
    if (value === undefined) return storage.getItem(PREFIX + name);
    if (value === null) storage.removeItem(PREFIX + name);
    else storage.setItem(PREFIX + name, value);
  } catch {
    // Refused or full: the setting lasts as long as the page.
  }
  return null;
}

export const setting = (name) => access("local", name);
export const keepSetting = (name, value) => access("local", name, value);
/** What is forgotten with the tab: the key. */
export const secret = (name) => access("session", name);
export const keepSecret = (name, value) => access("session", name, value);
