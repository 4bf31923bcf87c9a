// Sets the theme before the first paint: a classic script in the head, so that a dark page never flashes white.
// Without a choice of the user the page follows the system.

(() => {
  const KEY = "labelspace.theme";
  const root = document.documentElement;
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    // Storage may be refused; the page then follows the system.
  }
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme-toggle");
    const say = () => {
      const next = `Use the ${isDark() ? "light" : "dark"} theme`;
      button.setAttribute("aria-label", next);
      button.title = next;
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        // The choice then lasts as long as the page.
      }
      say();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
    say();
  });
})();
