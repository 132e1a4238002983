// The beam search of a sentence, step by step: every hypothesis, its score, and whether it was kept.

import { element, make, picture, widthOf } from "./shapes.js";

const ROW = 34, GAP = 44, PAD = 10, HEAD = 26, LEAST = 44;
const STATES = { kept: "kept", pruned: "pruned", finished: "finished" };
const DIFFERS = "The output of this search differs from the translation above, which was changed, or which a faster engine found.";

// The hypotheses from the first token to the one with this ID.
function lineage(steps, id) {
  const known = new Map(steps.flatMap(({ hypotheses }) => hypotheses).map((one) => [one.id, one]));
  const line = [];
  for (let one = known.get(id); one; one = known.get(one.parent)) line.unshift(one.id);
  return line;
}

function layout(steps) {
  let x = 0;
  const places = new Map();
  const columns = steps.map(({ hypotheses }) => {
    const width = Math.max(LEAST, ...hypotheses.map(({ token }) => widthOf(visible(token)) + 2 * PAD));
    hypotheses.forEach((one, row) => places.set(one.id, { x, y: HEAD + row * ROW, width }));
    const column = { x, width };
    x += width + GAP;
    return column;
  });
  const most = Math.max(...steps.map(({ hypotheses }) => hypotheses.length));
  return { places, columns, width: x - GAP, height: HEAD + most * ROW };
}

const visible = (token) => token.replaceAll("▁", "·") || "∅";

function drawTree(steps, winner) {
  const { places, columns, width, height } = layout(steps);
  const svg = picture(width, height, "Hypotheses from left to right, one column per step");
  svg.setAttribute("role", "img");
  const best = new Set(lineage(steps, winner));
  steps.forEach(({ hypotheses }, step) => {
    const group = make("g", { class: "step", "data-step": step }, svg);
    make("text", { x: columns[step].x + columns[step].width / 2, y: HEAD / 2 - 4, dy: ".35em", "text-anchor": "middle", class: "note" }, group, String(step + 1));
    for (const one of hypotheses) {
      const to = places.get(one.id), from = places.get(one.parent);
      const own = `${one.state}${best.has(one.id) ? " best" : ""}`;
      if (from) {
        const [x1, y1, x2, y2] = [from.x + from.width, from.y + ROW / 2 - 4, to.x, to.y + ROW / 2 - 4];
        make("path", { d: `M${x1} ${y1}C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}`, class: `edge ${own}` }, group);
      }
      const node = make("g", { class: `hypothesis ${own}`, "data-id": one.id, "data-parent": one.parent ?? "", "data-state": one.state, "data-score": one.score, "data-normalized": one.normalized }, group);
      make("rect", { x: to.x, y: to.y, width: to.width, height: ROW - 8, rx: 6 }, node);
      make("text", { x: to.x + to.width / 2, y: to.y + ROW / 2 - 4, dy: ".35em", "text-anchor": "middle" }, node, visible(one.token));
      make("title", {}, node, `${one.text}\nlog P ${one.score.toFixed(3)}, normalized ${one.normalized.toFixed(3)}, ${one.state}`);
    }
  });
  return { svg, columns };
}

function table(hypotheses, winner, best) {
  const head = element("tr", {}, ...["Hypothesis", "log P", "Normalized", "State"].map((text) => element("th", { textContent: text, scope: "col" })));
  const rows = hypotheses.map((one) => {
    const row = element("tr", { className: `${one.state}${best.has(one.id) ? " best" : ""}` },
      element("td", { textContent: one.text || visible(one.token) }),
      element("td", { textContent: one.score.toFixed(3) }),
      element("td", { textContent: one.normalized.toFixed(3) }),
      element("td", { textContent: one.id === winner ? "output" : STATES[one.state] }));
    return row;
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

// Draw the record of /api/beam: {steps, winner, reason}, for a sentence with this translation.
export function drawBeam(root, { steps, winner, reason }, translation) {
  const best = new Set(lineage(steps, winner));
  const last = steps.findIndex(({ hypotheses }) => hypotheses.some(({ id }) => id === winner));
  const output = steps[last].hypotheses.find(({ id }) => id === winner).text;
  const { svg, columns } = drawTree(steps, winner);
  const canvas = element("div", { className: "picture tree", tabIndex: 0 }, svg);
  canvas.setAttribute("role", "group");
  canvas.setAttribute("aria-label", "Tree of hypotheses");
  const slider = element("input", { type: "range", min: 1, max: steps.length, value: last + 1, id: "beam-step" });
  const shown = element("output", { htmlFor: "beam-step" });
  const label = element("label", { htmlFor: "beam-step", textContent: "Step" });
  const list = element("div", { className: "hypotheses", tabIndex: 0 });
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", "Hypotheses of this step");

  function show() {
    const step = Number(slider.value) - 1;
    shown.textContent = `${step + 1} of ${steps.length}`;
    for (const group of svg.querySelectorAll(".step")) {
      const own = Number(group.dataset.step);
      group.classList.toggle("later", own > step);
      group.classList.toggle("now", own === step);
    }
    list.replaceChildren(table(steps[step].hypotheses, winner, best));
    const { x, width } = columns[step];
    canvas.scrollTo({ left: x + width / 2 - canvas.clientWidth / 2, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  slider.addEventListener("input", show);
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    slider.value = Number(slider.value) + move;
    show();
  });
  const legend = element("p", { className: "legend faint" },
    ...["best", ...Object.keys(STATES)].map((name) => element("span", { className: `key ${name}`, textContent: name === "best" ? "output" : name })));
  root.replaceChildren(
    element("p", { className: "reason", textContent: reason }),
    ...(output.trim() === translation ? [] : [element("p", { className: "faint", textContent: DIFFERS })]),
    element("p", { className: "row" }, label, slider, shown), canvas, legend, list);
  show();
}
