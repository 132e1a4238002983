// Section 6.1: beam search with a length penalty.

import { EOS, PAD } from "./tokenizer.js";

// lp(Y) = ((5 + |Y|) / 6)^α. A hypothesis with log-probability log P(Y|X) has the score log P(Y|X) / lp(Y).
export const lengthPenalty = (length, alpha) => ((5 + length) / 6) ** alpha;

// Search the translation of a source sentence. The generator yields each step: its 2·W best candidates, best first,
// and the best output so far. In the last step, `outputs` has the finished hypotheses, best first.
//
// A step extends W live hypotheses by one token each. The 2·W best candidates contain at least W that are not
// finished, which are the next live ones. The search ends when the W finished hypotheses score at least as well as
// any live one still could: log P only decreases, so a live one scores at most log P / lp(maximum length).
export function* beamSearch(network, sourceIds, { W = 4, alpha = 0.6, maxLength = sourceIds.length + 50, see } = {}) {
  const memory = network.encode(sourceIds, see);
  let live = [{ ids: [], logP: 0, number: null, state: network.start(memory) }];
  let finished = [], number = 0;
  for (let length = 1; ; length += 1) {
    const { states, logP } = network.decode(live.map(({ state }) => state), live.map(({ ids }) => ids.at(-1) ?? PAD));
    const candidates = live
      .flatMap((parent, n) => top(logP[n], 2 * W).map(([id, log]) => (
        { parent: parent.number, ids: [...parent.ids, id], logP: parent.logP + log, state: states[n] })))
      .sort((a, b) => b.logP - a.logP)
      .slice(0, 2 * W)
      .map((one) => ({ ...one, number: number++, score: one.logP / lengthPenalty(length, alpha) }));
    const ended = candidates.filter(({ ids }) => ids.at(-1) === EOS);
    finished = [...finished, ...ended].sort((a, b) => b.score - a.score).slice(0, W);
    live = candidates.filter((one) => !ended.includes(one)).slice(0, W);
    const bound = live[0].logP / lengthPenalty(maxLength, alpha);
    const done = length >= maxLength || (finished.length === W && finished[W - 1].score >= bound);
    const fate = (one) => (live.includes(one) ? "kept" : finished.includes(one) ? "finished" : "pruned");
    yield { candidates: candidates.map((one) => ({ ...one, fate: fate(one) })), best: live[0], bound, done, outputs: finished.length ? finished : live };
    if (done) return;
  }
}

// The k largest values with their indices, largest first.
export function top(values, k) {
  const found = [];
  for (let i = 0; i < values.length; i += 1) {
    if (found.length === k && values[i] <= found[k - 1][1]) continue;
    let at = found.length;
    while (at > 0 && found[at - 1][1] < values[i]) at -= 1;
    found.splice(at, 0, [i, values[i]]);
    if (found.length > k) found.pop();
  }
  return found;
}
