// Constituency trees, if the server has a parser.

import { ask, at } from "./api.js";

function indented({ label, word, children }, before = "") {
  if (!children) return `${before}(${label} ${word})`;
  return `${before}(${label}\n${children.map((child) => indented(child, `${before}  `)).join("\n")})`;
}

export function offerParsing() {
  at("parser").hidden = false;
  at("parser-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    at("tree").textContent = "Parsing …";
    try {
      const { parses: [{ outputs }] } = await ask("api/parse", { q: at("sentence").value });
      at("tree").textContent = outputs.length ? indented(outputs[0].tree) : "";
    } catch (error) {
      at("tree").textContent = error.message;
    }
  });
}
