// Constituency trees, if the server has a parser.

import { ask, at } from "./api.js";
import { make, widthOf } from "./shapes.js";

const ROW = 46, GAP = 18; // pixels between two levels, and between two words

function bracketed({ label, word, children }) {
  return children ? `(${label} ${children.map(bracketed).join(" ")})` : `(${label} ${word})`;
}

const depthOf = ({ children }) => (children ? 1 + Math.max(...children.map(depthOf)) : 1);

// Draw a node above its children and return its x. The words share the last row.
function place(node, level, pen) {
  const y = 16 + level * ROW;
  const join = (from, x, to) => make("line", { x1: from, y1: to - ROW + 12, x2: x, y2: to - 14, class: "grid" }, pen.svg);
  let x;
  if (node.children) {
    const centres = node.children.map((child) => place(child, level + 1, pen));
    x = (centres[0] + centres.at(-1)) / 2;
    for (const each of centres) join(x, each, y + ROW);
  } else {
    const width = Math.max(widthOf(node.word), widthOf(node.label));
    x = pen.x + width / 2;
    pen.x += width + GAP;
    make("line", { x1: x, y1: y + 12, x2: x, y2: pen.bottom - 14, class: "grid" }, pen.svg);
    make("text", { x, y: pen.bottom, dy: ".35em", "text-anchor": "middle", "font-weight": "600" }, pen.svg, node.word);
  }
  make("text", { x, y, dy: ".35em", "text-anchor": "middle" }, pen.svg, node.label);
  return x;
}

function drawTree(tree) {
  const bottom = 16 + depthOf(tree) * ROW;
  const svg = make("svg", { role: "img", "aria-label": bracketed(tree) });
  const pen = { svg, x: 0, bottom };
  place(tree, 0, pen);
  const width = Math.max(pen.x, 40);
  svg.setAttribute("viewBox", `0 0 ${width} ${bottom + 16}`);
  svg.style.maxWidth = `${width}px`;
  return svg;
}

export function offerParsing() {
  at("parser").hidden = false;
  at("parser-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    at("tree").textContent = "Parsing …";
    try {
      const { parses: [{ outputs }] } = await ask("api/parse", { q: at("sentence").value });
      at("tree").replaceChildren(...outputs.slice(0, 1).map(({ tree }) => drawTree(tree)));
    } catch (error) {
      at("tree").textContent = error.message;
    }
  });
}
