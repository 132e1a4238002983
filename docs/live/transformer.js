// Section 3: the network. A sequence is a list of vectors, one per token, and each vector has d_model numbers.

import { PAD } from "./tokenizer.js";

// x W + b for each vector of a sequence. As in PyTorch, a row of the stored matrix has the weights of one output.
function linear(x, W, b) {
  const [nOut, nIn] = W.shape;
  const y = x.map(() => new Float32Array(nOut));
  let n = 0;
  for (; n + 4 <= x.length; n += 4) multiplyFour(x.slice(n, n + 4), W.data, nIn, nOut, y.slice(n, n + 4));
  for (; n < x.length; n += 1) multiplyOne(x[n], W.data, nIn, nOut, y[n]);
  if (b) for (const row of y) for (let o = 0; o < nOut; o += 1) row[o] += b[o];
  return y;
}

// Four outputs at a time: their sums do not wait for each other.
function multiplyOne(x, w, nIn, nOut, y) {
  for (let o = 0; o < nOut; o += 4) {
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (let i = 0, at = o * nIn; i < nIn; i += 1, at += 1) {
      const a = x[i];
      s0 += w[at] * a; s1 += w[at + nIn] * a; s2 += w[at + 2 * nIn] * a; s3 += w[at + 3 * nIn] * a;
    }
    y[o] = s0; y[o + 1] = s1; y[o + 2] = s2; y[o + 3] = s3;
  }
}

// The same for four vectors, such as the four hypotheses of a beam, and two outputs at a time: each number that is
// read is used several times, which takes less than half of the time.
function multiplyFour([x0, x1, x2, x3], w, nIn, nOut, [y0, y1, y2, y3]) {
  for (let o = 0; o < nOut; o += 2) {
    let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
    for (let i = 0, at = o * nIn; i < nIn; i += 1, at += 1) {
      const u = w[at], v = w[at + nIn], a = x0[i], b = x1[i], c = x2[i], d = x3[i];
      s0 += u * a; s1 += u * b; s2 += u * c; s3 += u * d;
      t0 += v * a; t1 += v * b; t2 += v * c; t3 += v * d;
    }
    y0[o] = s0; y1[o] = s1; y2[o] = s2; y3[o] = s3;
    y0[o + 1] = t0; y1[o + 1] = t1; y2[o + 1] = t2; y3[o + 1] = t3;
  }
}

// Sections 3.1 and 5.4: LayerNorm(x + Sublayer(x)). Each vector gets mean 0 and variance 1, then a gain and a bias.
function addAndNorm(x, sublayer, { gain, bias }) {
  return x.map((row, n) => {
    const sum = row.map((value, i) => value + sublayer[n][i]);
    const mean = sum.reduce((total, value) => total + value, 0) / sum.length;
    const variance = sum.reduce((total, value) => total + (value - mean) ** 2, 0) / sum.length;
    const deviation = Math.sqrt(variance + 1e-5);
    return sum.map((value, i) => ((value - mean) / deviation) * gain[i] + bias[i]);
  });
}

function softmax(scores) {
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

// Section 3.2.1, equation (1), for one query: softmax(q Kᵀ / √d_k) V in each of the h heads. Head i reads the i-th
// part of each vector. Returns the heads, concatenated, and the attention weights of each.
//
// Masking (section 3.2.3) means that a query cannot see some keys. Here they are not in the lists K and V.
function attend(q, K, V, h) {
  const d_k = q.length / h, d_v = V[0].length / h;
  const concatenated = new Float32Array(h * d_v), weights = [];
  for (let head = 0; head < h; head += 1) {
    const scores = K.map((k) => {
      let product = 0;
      for (let i = head * d_k; i < (head + 1) * d_k; i += 1) product += q[i] * k[i];
      return product / Math.sqrt(d_k);
    });
    weights.push(softmax(scores));
    V.forEach((v, n) => {
      const weight = weights[head][n];
      for (let i = head * d_v; i < (head + 1) * d_v; i += 1) concatenated[i] += weight * v[i];
    });
  }
  return { concatenated, weights };
}

// Section 3.2.2: MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O. Query n sees the keys of the list K[n].
function multiHead(Q, K, V, { W_O }, h, see) {
  const heads = Q.map((q, n) => attend(q, K[n], V[n], h));
  const output = linear(heads.map(({ concatenated }) => concatenated), W_O);
  see?.({ Q, K, V, weights: heads.map(({ weights }) => weights), heads: heads.map(({ concatenated }) => concatenated), output });
  return output;
}

// Section 3.3, equation (2): FFN(x) = max(0, x W_1 + b_1) W_2 + b_2.
function feedForward(x, { W_1, b_1, W_2, b_2 }) {
  const inner = linear(x, W_1, b_1).map((row) => row.map((value) => Math.max(0, value)));
  return linear(inner, W_2, b_2);
}

// Section 3.5: PE(pos, 2i) = sin(pos / 10000^(2i / d_model)) and PE(pos, 2i+1) = cos(the same).
export function positionalEncoding(pos, d_model) {
  return Float32Array.from({ length: d_model }, (_, i) => {
    const angle = pos / 10000 ** ((i - (i % 2)) / d_model);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

export class Transformer {
  // `weights` have the names of the Python package, and h is the number of heads.
  constructor(weights, h) {
    this.h = h;
    this.E = weights["target_embedding.weight"]; // one matrix for both languages and the output, section 3.4
    [this.vocabulary, this.d_model] = this.E.shape;
    this.encoder = layersOf(weights, "encoder");
    this.decoder = layersOf(weights, "decoder");
    this.d_ff = this.encoder[0].feedForward.b_1.length;
  }

  // Section 3.4: a row of the embedding matrix, times √d_model. The decoder's first input is a zero vector.
  embedding(id) {
    const { d_model, E } = this;
    if (id === PAD) return new Float32Array(d_model);
    return E.data.slice(id * d_model, (id + 1) * d_model).map((value) => value * Math.sqrt(d_model));
  }

  // The first input of both stacks: embedding plus positional encoding.
  embed(id, pos) {
    const encoding = positionalEncoding(pos, this.d_model);
    return this.embedding(id).map((value, i) => value + encoding[i]);
  }

  // Section 3.1, the encoder: N layers of self-attention and a feed-forward network. All positions are computed at
  // once. `see(name, value)` receives the results of the parts.
  encode(ids, see) {
    let x = ids.map((id, pos) => this.embed(id, pos));
    see?.("encoder.input", x);
    this.encoder.forEach((layer, number) => {
      const { W_Q, W_K, W_V } = layer.selfAttention;
      const [Q, K, V] = [W_Q, W_K, W_V].map((W) => linear(x, W));
      const all = (list) => x.map(() => list); // each position sees all positions
      const attention = multiHead(Q, all(K), all(V), layer.selfAttention, this.h, see && ((seen) => see(`encoder.${number}.self`, seen)));
      x = addAndNorm(x, attention, layer.norms[0]);
      see?.(`encoder.${number}.attended`, x);
      x = addAndNorm(x, feedForward(x, layer.feedForward), layer.norms[1]);
      see?.(`encoder.${number}.output`, x);
    });
    return x;
  }

  // The decoder before its first token. Keys and values of the encoder's output are computed only once.
  start(memory) {
    const source = this.decoder.map(({ sourceAttention: { W_K, W_V } }) => ({ K: linear(memory, W_K), V: linear(memory, W_V) }));
    return { source, pos: 0, past: this.decoder.map(() => ({ K: [], V: [] })) };
  }

  // Section 3.1, the decoder: one more token for each of several hypotheses of one sentence. A hypothesis sees its
  // own tokens so far, so keys and values of its past tokens are kept (a cache): `states[n].past[layer]`.
  // Returns the new states, and log p of every possible next token of each hypothesis.
  decode(states, ids, see) {
    let y = ids.map((id, n) => this.embed(id, states[n].pos));
    see?.("decoder.input", y);
    const past = states.map(() => []);
    this.decoder.forEach((layer, number) => {
      const note = (part) => see && ((seen) => see(`decoder.${number}.${part}`, seen));
      const { W_Q, W_K, W_V } = layer.selfAttention;
      const [Q, k, v] = [W_Q, W_K, W_V].map((W) => linear(y, W));
      states.forEach((state, n) => past[n].push({ K: [...state.past[number].K, k[n]], V: [...state.past[number].V, v[n]] }));
      const own = (part) => past.map((layers) => layers[number][part]);
      y = addAndNorm(y, multiHead(Q, own("K"), own("V"), layer.selfAttention, this.h, note("self")), layer.norms[0]);
      note("masked")?.(y);
      const { K, V } = states[0].source[number];
      const queries = linear(y, layer.sourceAttention.W_Q);
      const all = (list) => y.map(() => list);
      y = addAndNorm(y, multiHead(queries, all(K), all(V), layer.sourceAttention, this.h, note("source")), layer.norms[1]);
      note("attended")?.(y);
      y = addAndNorm(y, feedForward(y, layer.feedForward), layer.norms[2]);
      note("output")?.(y);
    });
    // Section 3.4: the embedding matrix is also the linear layer before the softmax.
    const logP = linear(y, this.E).map(logSoftmax);
    return { states: states.map((state, n) => ({ ...state, pos: state.pos + 1, past: past[n] })), logP };
  }
}

// The logarithm of the softmax over the vocabulary. Padding is never the next token.
function logSoftmax(logits) {
  logits[PAD] = -Infinity;
  let highest = -Infinity, total = 0;
  for (const value of logits) if (value > highest) highest = value;
  for (const value of logits) total += Math.exp(value - highest);
  const logTotal = highest + Math.log(total);
  return logits.map((value) => value - logTotal);
}

// The weights of a stack, under the paper's names.
function layersOf(weights, stack) {
  const layers = [];
  for (let n = 0; `${stack}.layers.${n}.residuals.0.norm.bias` in weights; n += 1) {
    const of = (name) => weights[`${stack}.layers.${n}.${name}`];
    const attention = (name) => {
      if (!of(`${name}.w_qkv.weight`)) return null;
      const [W_Q, W_K, W_V] = thirds(of(`${name}.w_qkv.weight`));
      return { W_Q, W_K, W_V, W_O: of(`${name}.w_o.weight`) };
    };
    layers.push({
      selfAttention: attention("self_attention"),
      sourceAttention: attention("source_attention"),
      feedForward: {
        W_1: of("feed_forward.w_1.weight"), b_1: of("feed_forward.w_1.bias"),
        W_2: of("feed_forward.w_2.weight"), b_2: of("feed_forward.w_2.bias"),
      },
      norms: [0, 1, 2].map((i) => ({ gain: of(`residuals.${i}.norm.weight`), bias: of(`residuals.${i}.norm.bias`) })),
    });
  }
  return layers;
}

// W_Q, W_K and W_V are stored as one matrix.
function thirds({ shape: [rows, columns], data }) {
  const third = rows / 3;
  return [0, 1, 2].map((i) => ({ shape: [third, columns], data: data.subarray(i * third * columns, (i + 1) * third * columns) }));
}
