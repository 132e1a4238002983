// All numbers of a sentence and its translation, by name, as the figures and panels show them.

import { score } from "./model.js";

// Returns {sequences, attentions, logP}: vectors such as `sequences["encoder.7.output"]`, and
// {Q, K, V, weights, heads, output} such as `attentions["decoder.2.source"]`. `weights[query][head][key]`.
export function traceOf(model, sourceIds, targetIds) {
  const seen = {};
  score(model, sourceIds, targetIds, (_, name, value) => { (seen[name] ??= []).push(value); });
  const { "decoder.logP": logP, ...parts } = seen;
  const sequences = {}, attentions = {};
  for (const [name, values] of Object.entries(parts)) {
    // The encoder computes all positions at once, and the decoder one position per step.
    if (!name.endsWith(".self") && !name.endsWith(".source")) sequences[name] = values.flat();
    else attentions[name] = joined(values);
  }
  return { sequences, attentions, logP };
}

function joined(values) {
  const all = (part) => values.flatMap((value) => value[part]);
  const last = values.at(-1);
  return { Q: all("Q"), K: last.K.at(-1), V: last.V.at(-1), weights: all("weights"), heads: all("heads"), output: all("output") };
}

// The matrices of one head: its part of Q, K and V, scores, weights and output. Keys that are masked have no number.
export function headOf({ Q, K, V, weights, heads }, head, h) {
  const part = (rows) => rows.map((row) => row.slice((head * row.length) / h, ((head + 1) * row.length) / h));
  const [q, k, v, output] = [Q, K, V, heads].map(part);
  const scores = q.map((query, n) => k.map((key, m) => {
    if (m >= weights[n][head].length) return 0;
    return query.reduce((sum, value, i) => sum + value * key[i], 0) / Math.sqrt(query.length);
  }));
  return { q, k, v, scores, weights: weightsOf({ K, weights }, head), output };
}

// The weights of a head with a column for every key.
export const weightsOf = ({ K, weights }, head) => weights.map((row) => K.map((_, n) => row[head][n] ?? 0));

// The words that subwords form, for the attention explorer. Punctuation is a separate word.
export function sideOf(pieces) {
  const words = [], word_of = [];
  pieces.forEach((piece, n) => {
    const separate = /^▁|^<\/?s>$/.test(piece) || /^[^\p{L}\p{N}<]+$/u.test(piece);
    if (separate || n === 0 || pieces[n - 1] === "<s>") words.push("");
    words[words.length - 1] += piece.replace("▁", "");
    word_of.push(words.length - 1);
  });
  return { pieces, words: words.map((word, n) => word || pieces[word_of.indexOf(n)]), word_of };
}
