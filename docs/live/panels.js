// The panels of chapter 0 for a reader's own run. Without JavaScript they show a recorded one.

import { element } from "./explorer/shapes.js";
import { fillWords, picture, visible } from "./figures.js";
import { top } from "./search.js";
import { positionalEncoding } from "./transformer.js";

const N_LIKELY = 8;

// Selects with labels. `changed(values)` is called at once, and after each change.
export function choices(root, fields, changed) {
  const selects = fields.map(([name, options]) => element("select", { name }, ...options.map((text, n) => new Option(text, n))));
  const labels = fields.map(([name], n) => element("label", {}, `${name} `, selects[n]));
  const report = () => changed(selects.map((select) => Number(select.value)), selects);
  for (const select of selects) select.addEventListener("change", report);
  root.replaceChildren(...labels);
  return { selects, report };
}

export function chips(name, pieces, ids, shade = () => 0, isNow = () => false) {
  const items = pieces.map((piece, n) => {
    const item = element("li", { className: isNow(n) ? "now" : "" }, element("b", { textContent: visible(piece) }), " ", element("small", { textContent: ids[n] }));
    item.style.setProperty("--shade", `${Math.round(60 * shade(n))}%`);
    return item;
  });
  return [element("p", { className: "live-name", textContent: name }), element("ol", { className: "chips" }, ...items)];
}

export function showSubwords(root, { source, target }) {
  root.replaceChildren(
    ...chips(`Source, ${source.ids.length} subwords`, source.pieces, source.ids),
    ...chips(`Output, ${target.ids.length} subwords`, target.pieces, target.ids));
}

export function showEmbedding(root, network, { source }) {
  const cell = (vector) => element("td", {}, element("img", { className: "strip", alt: "", src: picture([vector], 2.5) }));
  const rows = source.ids.map((id, pos) => element("tr", {},
    element("th", { scope: "row", textContent: visible(source.pieces[pos]) }),
    ...[network.embedding(id), positionalEncoding(pos, network.d_model), network.embed(id, pos)].map(cell)));
  root.querySelector("tbody").replaceChildren(...rows);
}

// The decoder step by step: a slider, the words that it attends to, and the softmax.
export function showSoftmax(root, figure, { source, target, attentions, logP, vocabulary, depth }) {
  const slider = element("input", { type: "range", id: "live-step", min: 1, max: target.ids.length, value: hardest(logP) + 1 });
  const shown = element("output", { htmlFor: "live-step" });
  const view = element("div");
  const { weights } = attentions[`decoder.${depth - 1}.source`];

  function show() {
    const step = Number(slider.value) - 1;
    const mean = source.ids.map((_, key) => weights[step].reduce((sum, head) => sum + head[key], 0) / weights[step].length);
    const likely = top(logP[step], N_LIKELY).map(([id, log]) => [vocabulary[id], Math.exp(log)]);
    shown.textContent = `${step + 1} of ${target.ids.length}`;
    slider.setAttribute("aria-valuetext", `step ${step + 1}: ${visible(target.pieces[step])}`);
    view.replaceChildren(
      ...chips("The decoder attends to (last layer, mean of the heads)", source.pieces, source.ids, (n) => mean[n]),
      ...chips("It has written, and writes next", target.pieces.slice(0, step + 1), target.ids, () => 0, (n) => n === step),
      element("p", { className: "live-name", textContent: `Softmax: the ${N_LIKELY} likeliest of ${vocabulary.length.toLocaleString("en")} subwords` }),
      bars(likely, target.pieces[step]));
    fillWords(figure, likely);
  }

  slider.addEventListener("input", show);
  root.replaceChildren(element("p", { className: "row" }, element("label", { htmlFor: "live-step", textContent: "Step" }), slider, shown), view);
  show();
}

// The step at which the network is least certain.
function hardest(logP) {
  const highest = logP.map((step) => top(step, 1)[0][1]);
  return highest.indexOf(Math.min(...highest));
}

function bars(likely, written) {
  const rows = likely.map(([piece, p]) => {
    const bar = element("span", { className: "bar" });
    bar.style.setProperty("--p", p);
    return element("tr", { className: piece === written ? "now" : "" },
      element("th", { scope: "row", textContent: visible(piece) }), element("td", {}, bar), element("td", { textContent: p < 0.0005 ? p.toExponential(0) : p.toFixed(3) }));
  });
  return element("table", { className: "bars" }, element("tbody", {}, ...rows));
}
