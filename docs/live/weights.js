// The weights of the bundled model, from its `weights.safetensors`.
//
// The file begins with the length of a JSON header, which has the type, shape and place of each tensor. A matrix is
// stored as 8-bit integers with one scale per row: row o of W is scale[o] · stored[o].

const TYPES = { F32: Float32Array, I8: Int8Array };

export function readWeights(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const stored = (name) => {
    const [first, end] = header[name].data_offsets;
    return new TYPES[header[name].dtype](buffer.slice(8 + length + first, 8 + length + end));
  };
  const weights = {};
  for (const name of Object.keys(header)) {
    if (name === "__metadata__" || name.endsWith(".scale")) continue;
    const shape = header[name].shape;
    const data = header[name].dtype === "I8" ? dequantized(stored(name), stored(`${name}.scale`)) : stored(name);
    weights[name] = shape.length === 1 ? data : { shape, data };
  }
  return weights;
}

function dequantized(integers, scale) {
  const width = integers.length / scale.length;
  const data = new Float32Array(integers.length);
  for (let i = 0; i < data.length; i += 1) data[i] = integers[i] * scale[Math.floor(i / width)];
  return data;
}
