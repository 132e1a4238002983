// Chapter 0: translates a reader's sentence and fills figures and panels with its numbers.

import { drawBeam } from "./explorer/beam.js"; // the site copies these from src/transept/apps/explorer
import { explore } from "./explorer/explorer.js";
import { fillFigure1, fillFigure2 } from "./figures.js";
import { framed, loadModel } from "./model.js";
import { choices, showEmbedding, showSoftmax, showSubwords } from "./panels.js";
import { beamSearch } from "./search.js";
import { EOS } from "./tokenizer.js";
import { sideOf, traceOf, weightsOf } from "./trace.js";

const FOLDER = new URL("./en-de", import.meta.url).href;
const LONGEST = 100; // subwords; longer sentences take many seconds
const KINDS = ["encoder self-attention", "masked decoder self-attention", "encoder-decoder attention"];
const live = document.getElementById("live");
const form = live.querySelector("form");
const part = (name) => live.querySelector(`.live-${name}`);
const panel = (name) => document.querySelector(`[data-live="${name}"]`);
const say = (text) => { part("status").textContent = text; };
let model = null;

async function load() {
  model ??= await loadModel(FOLDER, (loaded, total) => say(`Loading the model: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`));
  return model;
}

// Search, and show the best hypothesis after each step.
async function search(sourceIds) {
  const steps = [];
  let spent = 0, begun = performance.now();
  for (const step of beamSearch(model.network, sourceIds)) {
    spent += performance.now() - begun;
    steps.push(step);
    part("output").textContent = model.tokenizer.decode(step.best.ids);
    await new Promise((resolve) => { setTimeout(resolve); }); // lets the browser draw
    begun = performance.now();
  }
  return { steps, spent };
}

async function translate(text) {
  if (!/\p{L}/u.test(text)) return say("Type a sentence with words.");
  await load();
  const ids = framed(model, text);
  if (ids.length > LONGEST) return say(`The sentence has ${ids.length} subwords. The page translates at most ${LONGEST}.`);
  part("recorded").hidden = true;
  say("Translating …");
  const { steps, spent } = await search(ids);
  const [best] = steps.at(-1).outputs;
  const output = model.tokenizer.decode(best.ids);
  part("output").textContent = output;
  say(`${ids.length} subwords in, ${best.ids.length} out, ${(spent / 1000).toFixed(1)} s in this page. log P = ${best.logP.toFixed(2)}, score = ${best.score.toFixed(2)}.`);
  live.dataset.milliseconds = Math.round(spent);
  await new Promise((resolve) => { setTimeout(resolve); });
  show({ text, output, ids, best, steps });
}

function show({ text, output, ids, best, steps }) {
  const { network, tokenizer } = model;
  const side = (some) => ({ ids: some, pieces: some.map((id) => tokenizer.pieces[id]) });
  const [source, target] = [side(ids), side(best.ids.at(-1) === EOS ? best.ids : [...best.ids, EOS])];
  const trace = traceOf(model, source.ids, target.ids);
  const depths = { encoder: network.encoder.length, decoder: network.decoder.length };
  showSubwords(panel("subwords"), { source, target });
  showEmbedding(panel("embedding"), network, { source });
  offerFigures({ ...trace, source: text, output, depths });
  showHeads(source, target, trace, depths);
  showSoftmax(panel("softmax"), panel("figure-1"), { source, target, ...trace, vocabulary: tokenizer.pieces, depth: depths.decoder });
  drawBeam(panel("beam"), treeOf(steps, best), output);
}

const numbers = (n, name) => Array.from({ length: n }, (_, i) => `${name}${i + 1}`);

function offerFigures(run) {
  const { depths, attentions } = run;
  const first = choices(panel("figure-1-choices"), [["Encoder", numbers(depths.encoder, "layer ")], ["Decoder", numbers(depths.decoder, "layer ")]],
    ([encoder, decoder]) => fillFigure1(panel("figure-1"), run, { encoder, decoder }));
  first.selects.forEach((select) => { select.value = select.length - 1; });
  first.report();
  const { h } = model.network;
  const second = choices(panel("figure-2-choices"), [["Attention", KINDS], ["Layer", numbers(depths.encoder, "")], ["Head", numbers(h, "")]],
    ([kind, layer, head], [, layers]) => {
      const stack = kind === 0 ? "encoder" : "decoder";
      [...layers.options].forEach((option, n) => { option.hidden = option.disabled = n >= depths[stack]; });
      const shown = Math.min(layer, depths[stack] - 1);
      layers.value = shown;
      fillFigure2(panel("figure-2"), attentions[`${stack}.${shown}.${kind === 2 ? "source" : "self"}`], head, h, `${KINDS[kind]}, layer ${shown + 1}, head ${head + 1}`);
    });
  [second.selects[1].value, second.selects[2].value] = [5, 3];
  second.report();
}

function showHeads(source, target, { attentions }, depths) {
  const [read, written] = [sideOf(source.pieces), sideOf(target.pieces)];
  const before = sideOf(["<s>", ...target.pieces.slice(0, -1)]);
  const map = (stack, name, queries, keys) => ({
    queries, keys, weights: Array.from({ length: depths[stack] }, (_, layer) => {
      const attention = attentions[`${stack}.${layer}.${name}`];
      return Array.from({ length: model.network.h }, (_, head) => weightsOf(attention, head));
    }),
  });
  const maps = { encoder: () => map("encoder", "self", read, read), decoder: () => map("decoder", "self", written, before), source: () => map("decoder", "source", written, read) };
  const heads = new Set(Array.from({ length: model.network.h }, (_, n) => n + 1));
  const state = { kind: "encoder", view: "overview", layer: 0, heads, tokens: "words", sinks: true, pinned: null };
  explore(panel("heads"), { mapOf: (kind) => maps[kind](), state });
}

// The search as `drawBeam` reads it.
function treeOf(steps, best) {
  const hypotheses = ({ candidates }) => candidates.map(({ number, parent, ids, logP, score, fate }) => ({
    id: number, parent, token: model.tokenizer.pieces[ids.at(-1)], text: model.tokenizer.decode(ids), score: logP, normalized: score, state: fate,
  }));
  const penalty = best.logP / best.score;
  const { bound, outputs: [, second] } = steps.at(-1);
  const reason = `The output has the highest score: log P ${best.logP.toFixed(2)} / length penalty ${penalty.toFixed(2)} = ${best.score.toFixed(2)}.`
    + (second ? ` The second best hypothesis has ${second.score.toFixed(2)}.` : "")
    + ` No unfinished hypothesis could score more than ${bound.toFixed(2)}.`;
  return { steps: steps.map((step) => ({ hypotheses: hypotheses(step) })), winner: best.number, reason };
}

async function submit() {
  const button = form.querySelector(".live-go");
  if (button.disabled) return;
  button.disabled = true;
  live.dataset.state = "busy";
  try {
    await translate(form.querySelector("input").value.trim());
  } catch (error) {
    say(`This failed: ${error.message}`);
    throw error;
  } finally {
    button.disabled = false;
    live.dataset.state = "ready";
  }
}

form.hidden = false;
form.addEventListener("submit", (event) => { event.preventDefault(); submit(); });
for (const example of form.querySelectorAll(".live-examples button")) {
  example.addEventListener("click", () => { form.querySelector("input").value = example.textContent; submit(); });
}
live.dataset.state = "ready";
