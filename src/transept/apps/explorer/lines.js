// Lines between two rows of words, as in Figures 3 to 5 of the paper.

import { addWord, colourOf, FONT, isDashed, make, mark, picture, widthOf } from "./shapes.js";

const SPACE = 16, GUTTER = 8, WIDEST_ROW = 900, STRIP = 8;
const LEAST_SLOT = 22, MOST_SLOT = 34;
const LINE_WIDTH = 5; // of a weight of 1
const FAINTEST = 5e-4; // smaller weights would be invisible

// The lines of many heads need some width even at a full stop.
const slotOf = ({ text }) => Math.max(widthOf(text), 2 * FONT) + SPACE;

function rowOf(words, slot) {
  if (slot) {
    const centres = words.map((_, place) => (place + 0.5) * slot);
    return { centres, slot, width: words.length * slot, height: Math.max(...words.map(({ text }) => widthOf(text))) };
  }
  let x = 0;
  const centres = words.map((word) => {
    x += slotOf(word);
    return x - slotOf(word) / 2;
  });
  return { centres, slot: Math.min(...words.map(slotOf)), width: x, height: FONT * 1.3 };
}

function addRow(svg, { words, xs, side, slot, y, height }) {
  words.forEach((word, place) => {
    const x = xs[place];
    const width = slot || slotOf(word);
    const middle = slot ? (side === 0 ? y + height - 4 : y + 4) : y + height / 2;
    const anchor = slot ? (side === 0 ? "start" : "end") : "middle";
    const box = [x - width / 2, y, width, height];
    addWord(svg, { ...word, side, first: place === 0, box, x, y: middle, anchor, upright: Boolean(slot) });
  });
}

function layout({ queries, keys }, room) {
  const widest = Math.max(...[queries, keys].map((words) => words.reduce((sum, word) => sum + slotOf(word), 0)));
  const limit = Math.min(WIDEST_ROW, room);
  const most = Math.max(queries.length, keys.length);
  const slot = widest > limit ? Math.min(Math.max(LEAST_SLOT, limit / most), MOST_SLOT) : 0;
  const [above, below] = [queries, keys].map((words) => rowOf(words, slot));
  const width = Math.max(above.width, below.width);
  const top = above.height + 2 * GUTTER;
  const bottom = top + Math.min(Math.max(0.24 * width, 150), 300);
  return {
    above, below, slot, width, top, bottom,
    height: bottom + STRIP + 3 * GUTTER + below.height,
    xs: [above, below].map((row) => row.centres.map((x) => x + (width - row.width) / 2)),
  };
}

// Draw these heads of a layer. `show(one, pinned)` draws all lines, or those of one word with a
// strip of cells that shows its weight per head, and returns the weights it drew.
export function drawLines(view, layer, heads, room) {
  const place = layout(view, room);
  const { above, below, slot, top, bottom, xs } = place;
  const weights = heads.map((head) => view.weights(layer, head));
  const svg = picture(place.width, place.height, "Queries above, keys below");
  const [all, some] = [0, 1].map(() => make("g", { "aria-hidden": "true" }, svg));
  const column = (Math.min(above.slot, below.slot) * 0.8) / Math.max(heads.length, 1);
  const shift = (index) => (index - (heads.length - 1) / 2) * column;
  addRow(svg, { words: view.queries, xs: xs[0], side: 0, slot, y: 0, height: above.height + GUTTER });
  addRow(svg, { words: view.keys, xs: xs[1], side: 1, slot, y: bottom + STRIP + GUTTER, height: below.height + GUTTER });

  function addLine(group, { index, q, k, weight, opacity }) {
    const x1 = xs[0][q] + shift(index), x2 = xs[1][k] + shift(index);
    const line = make("line", {
      x1, y1: top, x2, y2: bottom,
      "stroke-width": (LINE_WIDTH * weight).toFixed(3), "stroke-opacity": opacity.toFixed(2),
      "data-head": heads[index], "data-query": view.queries[q].number, "data-key": view.keys[k].number, "data-weight": weight.toFixed(6),
    }, group);
    line.style.stroke = colourOf(heads[index]);
    if (isDashed(heads[index])) line.setAttribute("stroke-dasharray", "7 4");
    return [x1, x2];
  }

  function fill(group, one) {
    const drawn = [];
    weights.forEach((rows, index) => rows.forEach((row, q) => row.forEach((weight, k) => {
      const [query, key] = [view.queries[q], view.keys[k]];
      const chosen = !one || one.number === (one.side === 0 ? query : key).number;
      if (!chosen || weight < FAINTEST) return;
      // The few lines of one word do not hide each other.
      const [x1, x2] = addLine(group, { index, q, k, weight, opacity: one ? 1 : 0.4 + 0.6 * weight });
      if (!one) return;
      drawn.push({ head: heads[index], word: (one.side === 0 ? key : query).text, weight });
      const [x, y] = one.side === 0 ? [x2, bottom + 2] : [x1, top - STRIP - 2];
      const cell = make("rect", { x: x - column / 2, y, width: column, height: STRIP, "fill-opacity": weight.toFixed(3) }, group);
      cell.style.fill = colourOf(heads[index]);
    })));
    return drawn;
  }

  function show(one, pinned) {
    some.replaceChildren();
    // There can be many lines, so they are created once and hidden while one word is shown.
    if (!one && !all.hasChildNodes()) fill(all, null);
    all.setAttribute("display", one ? "none" : "inline");
    mark(svg, one, pinned);
    return one ? fill(some, one) : [];
  }

  return { svg, show };
}
