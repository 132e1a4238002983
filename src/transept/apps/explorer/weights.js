// Attention weights as the explorer shows them: between words or subwords, with or without sinks.

export const KINDS = {
  encoder: "Encoder self-attention",
  decoder: "Decoder self-attention",
  source: "Encoder-decoder attention",
};
export const NOTES = {
  encoder: "Above and below are the words of the source.",
  decoder: "Above is each target word; below are the target words before it.",
  source: "Above are the target words; below are the source words.",
};
// Full stops and the ends of sentences, which receive the weight of heads that have nothing to look at.
const SINK = /^[▁·]*(?:\.|<\/?s>)$/;

export const plain = (piece) => piece.replace(/^·+/, "") || piece;
const visible = (piece) => piece.replaceAll("▁", "·");

// Merge subwords into words: sum over the keys, mean over the queries.
function joined(weights, queries, keys) {
  const counts = queries.words.map(() => 0);
  const rows = queries.words.map(() => keys.words.map(() => 0));
  weights.forEach((row, query) => {
    const word = queries.word_of[query];
    counts[word] += 1;
    row.forEach((weight, key) => { rows[word][keys.word_of[key]] += weight; });
  });
  return rows.map((row, word) => row.map((weight) => weight / counts[word]));
}

// The words of a map, and a function that returns the weights of a layer and a head (from 1).
// `number` of a word is its position in the sentence, which hiding sinks does not change.
export function shown(map, { tokens, sinks }) {
  const asWords = tokens === "words";
  const side = ({ words, pieces }) => (asWords ? words : pieces)
    .map((text, number) => ({ text: visible(text), number }))
    .filter(({ text }) => sinks || !SINK.test(text));
  const [queries, keys] = [side(map.queries), side(map.keys)];
  return {
    queries,
    keys,
    weights(layer, head) {
      const whole = map.weights[layer - 1][head - 1];
      const rows = asWords ? joined(whole, map.queries, map.keys) : whole;
      return queries.map((query) => keys.map((key) => rows[query.number][key.number]));
    },
  };
}
