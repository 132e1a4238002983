// Loads the bundled model from the files of this site, and translates. No request leaves the site.

import { beamSearch } from "./search.js";
import { EOS, PAD, Tokenizer } from "./tokenizer.js";
import { Transformer } from "./transformer.js";
import { readWeights } from "./weights.js";

// `progress(loaded, total)` is called with bytes.
export async function loadModel(folder, progress = () => {}) {
  const [config, vocabulary, weights] = await Promise.all([
    download(`${folder}/config.toml`), download(`${folder}/tokenizer.model`), download(`${folder}/weights.safetensors`, progress),
  ]);
  const h = Number(/^n_heads = (\d+)$/m.exec(new TextDecoder().decode(config))[1]);
  return { tokenizer: new Tokenizer(vocabulary), network: new Transformer(readWeights(weights), h) };
}

async function download(address, progress = () => {}) {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: status ${response.status}`);
  const total = Number(response.headers.get("Content-Length"));
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.length;
    progress(loaded, total);
  }
  return new Blob(parts).arrayBuffer();
}

// The encoder's input: the ids of the text, and the end symbol.
export const framed = ({ tokenizer }, text) => [...tokenizer.encode(text), EOS];

// The best output of a sentence.
export function translate(model, text, options) {
  let last = null;
  for (const step of beamSearch(model.network, framed(model, text), options)) last = step;
  const [best] = last.outputs;
  return { text: model.tokenizer.decode(best.ids), ids: best.ids, logP: best.logP, score: best.score };
}

// log p of each token of a given target, end symbol included. `see(step, name, value)` receives all results.
export function score({ network }, sourceIds, targetIds, see) {
  let state = network.start(network.encode(sourceIds, see && ((...seen) => see(-1, ...seen))));
  return targetIds.map((id, step) => {
    const { states, logP } = network.decode([state], [targetIds[step - 1] ?? PAD], see && ((...seen) => see(step, ...seen)));
    [state] = states;
    see?.(step, "decoder.logP", logP[0]);
    return logP[0][id];
  });
}
