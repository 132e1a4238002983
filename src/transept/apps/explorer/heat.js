// Heat maps: one per head, with a row per query and a column per key, and all heads as thumbnails.

import { addWord, make, mark, picture, widthOf } from "./shapes.js";

const CELL = 22, GAP = 6, MARGIN = 28, HEADING = 26;

const widest = (words) => Math.max(...words.map(({ text }) => widthOf(text)));

// Draw a heat map per head of a layer. All share one colour scale, from 0 to the largest weight.
export function drawHeat(view, layer, heads, room) {
  const { queries, keys } = view;
  const weights = heads.map((head) => view.weights(layer, head));
  const full = Math.max(...weights.flat(2), 1e-6);
  const left = widest(queries) + 2 * GAP, below = widest(keys) + 2 * GAP;
  const width = left + keys.length * CELL, height = HEADING + queries.length * CELL + below;
  const columns = Math.max(1, Math.min(heads.length, Math.floor((room + MARGIN) / (width + MARGIN))));
  const rows = Math.ceil(heads.length / columns);
  const svg = picture(columns * (width + MARGIN) - MARGIN, rows * (height + MARGIN) - MARGIN, "Rows are queries, columns are keys");

  heads.forEach((head, index) => {
    const x = (index % columns) * (width + MARGIN) + left;
    const y = Math.floor(index / columns) * (height + MARGIN) + HEADING;
    make("text", { x: x + (keys.length * CELL) / 2, y: y - HEADING / 2, dy: ".35em", "text-anchor": "middle", class: "note" }, svg, `layer ${layer}, head ${head}`);
    weights[index].forEach((row, q) => row.forEach((weight, k) => addCell(svg, {
      x: x + k * CELL, y: y + q * CELL, head, weight, full, query: queries[q], key: keys[k],
    })));
    make("rect", { x, y, width: keys.length * CELL, height: queries.length * CELL, class: "frame" }, svg);
    queries.forEach((word, q) => addWord(svg, {
      ...word, side: 0, first: index === 0 && q === 0, box: [x - left, y + q * CELL, left - 2, CELL],
      x: x - GAP, y: y + (q + 0.5) * CELL, anchor: "end",
    }));
    const end = y + queries.length * CELL;
    keys.forEach((word, k) => addWord(svg, {
      ...word, side: 1, first: index === 0 && k === 0, box: [x + k * CELL, end + 2, CELL, below - 2],
      x: x + (k + 0.5) * CELL, y: end + GAP, anchor: "end", upright: true,
    }));
  });

  function show(one, pinned) {
    mark(svg, one, pinned);
    const drawn = [];
    for (const cell of svg.querySelectorAll(".cell")) {
      const at = Number(one?.side === 0 ? cell.dataset.query : cell.dataset.key);
      cell.classList.toggle("off", Boolean(one) && at !== one.number);
    }
    if (!one) return drawn;
    weights.forEach((matrix, index) => matrix.forEach((row, q) => row.forEach((weight, k) => {
      const [own, other] = one.side === 0 ? [queries[q], keys[k]] : [keys[k], queries[q]];
      if (own.number === one.number) drawn.push({ head: heads[index], word: other.text, weight });
    })));
    return drawn;
  }

  return { svg, show, full };
}

function addCell(svg, { x, y, head, weight, full, query, key }) {
  const cell = make("rect", {
    x, y, width: CELL, height: CELL, class: "cell", "fill-opacity": (weight / full).toFixed(3),
    "data-head": head, "data-query": query.number, "data-key": key.number, "data-weight": weight.toFixed(6),
  }, svg);
  make("title", {}, cell, `${query.text} to ${key.text}: ${weight.toFixed(3)}`);
}

// A button per layer and head with its heat map. `choose(layer, head)` is called on a click.
export function drawOverview(view, nLayers, nHeads, choose) {
  const grid = document.createElement("div");
  grid.className = "overview";
  grid.style.setProperty("--heads", nHeads);
  const buttons = [];
  for (let layer = 1; layer <= nLayers; layer += 1) {
    for (let head = 1; head <= nHeads; head += 1) {
      const button = document.createElement("button");
      button.type = "button";
      button.tabIndex = buttons.length ? -1 : 0;
      button.setAttribute("aria-label", `${layer}.${head}: layer ${layer}, head ${head}`);
      const name = document.createElement("span");
      name.textContent = `${layer}.${head}`;
      button.append(thumbnail(view.weights(layer, head)), name);
      button.addEventListener("click", () => choose(layer, head));
      buttons.push(button);
    }
  }
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: nHeads, ArrowUp: -nHeads }[event.key];
    const next = buttons[buttons.indexOf(event.target.closest("button")) + step];
    if (!step || !next) return;
    event.preventDefault();
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
  grid.append(...buttons);
  return grid;
}

function thumbnail(rows) {
  const svg = make("svg", { viewBox: `0 0 ${rows[0]?.length ?? 1} ${rows.length || 1}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  rows.forEach((row, y) => row.forEach((weight, x) => {
    if (weight > 0.02) make("rect", { x, y, width: 1, height: 1, class: "cell", "fill-opacity": weight.toFixed(2) }, svg);
  }));
  return svg;
}
