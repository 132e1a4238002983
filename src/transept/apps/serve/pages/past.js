// Earlier translations. They are stored in this browser only.

import { at, element, stored } from "./api.js";

const [PLACE, SWITCH] = ["transept.history", "transept.history.off"];
const MOST = 50, WAIT = 1500; // milliseconds after which a finished translation is remembered
let timer = null;

function read() {
  try { return JSON.parse(stored.get(PLACE)) ?? []; } catch { return []; }
}

const isOff = () => stored.get(SWITCH) !== null;

// Remember a translation if it is still shown after a moment. A longer version replaces a shorter one.
export function remember(entry) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (isOff() || !entry.q.trim()) return;
    const [last, ...others] = read();
    const grown = last && (entry.q.startsWith(last.q) || last.q.startsWith(entry.q));
    const kept = (grown || !last ? others : [last, ...others]).filter(({ q, target }) => q !== entry.q || target !== entry.target);
    stored.set(PLACE, JSON.stringify([entry, ...kept].slice(0, MOST)));
  }, WAIT);
}

export const forget = () => clearTimeout(timer);

// Show the list. `restore(entry)` is called with the chosen translation.
export function offerHistory(restore) {
  const dialog = at("history");
  const draw = () => {
    const entries = read();
    at("history-list").replaceChildren(...entries.map((entry) => {
      const button = element("button", { type: "button" },
        element("span", { className: "faint", textContent: `${entry.source} → ${entry.target}` }),
        element("span", { textContent: entry.q.slice(0, 160) }),
        element("span", { className: "faint", textContent: entry.text.slice(0, 160) }));
      button.addEventListener("click", () => { dialog.close(); restore(entry); });
      return element("li", {}, button);
    }));
    at("history-empty").hidden = entries.length > 0;
    at("history-clear").hidden = !entries.length;
    at("history-on").checked = !isOff();
  };
  at("history-open").addEventListener("click", () => { draw(); dialog.showModal(); });
  at("history-close").addEventListener("click", () => dialog.close());
  at("history-clear").addEventListener("click", () => { stored.set(PLACE, null); draw(); });
  at("history-on").addEventListener("change", () => {
    stored.set(SWITCH, at("history-on").checked ? null : "1");
    if (isOff()) forget();
  });
}
