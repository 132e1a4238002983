// Section 5.1: byte-pair encoding. Text becomes subwords, and subwords become text.
//
// The vocabulary is the `tokenizer.model` of the Python package, a file of sentencepiece. It is a protocol buffer
// that lists the subwords. The score of a subword is its rank: the merge that was learned first has the highest.

export const PAD = 0, EOS = 1;
const NORMAL = 1, USER_DEFINED = 4, BYTE = 6; // kinds of subwords
const SPACE = "▁"; // how the vocabulary writes a space

// A `▁` of the text itself is replaced by MARK, so that it is not read as a space.
const MARK = "\u{f2581}", ESCAPE = "\u{f2580}";
const escaped = (text) => text.replace(/[▁\u{f2580}\u{f2581}]/gu, (one) => (one === SPACE ? MARK : ESCAPE + one));
const unescaped = (text) => text.replace(/\u{f2580}([\u{f2580}\u{f2581}])|\u{f2581}/gu, (_, one) => one ?? SPACE);

export class Tokenizer {
  constructor(buffer) {
    this.pieces = []; // the subword of each id
    this.scores = [];
    this.ids = new Map(); // the id of each subword that text can contain
    this.byteIds = new Map(); // characters that are not in the vocabulary are written as UTF-8 bytes
    this.bytes = []; // the UTF-8 bytes of each id
    for (const [number, value] of fields(new Uint8Array(buffer))) {
      if (number === 1) this.#add(new Map(fields(value)));
    }
  }

  #add(entry) {
    const id = this.pieces.length, piece = new TextDecoder().decode(entry.get(1)), kind = entry.get(3) ?? NORMAL;
    this.pieces.push(piece);
    this.scores.push(entry.get(2) ?? 0);
    this.bytes.push([]);
    if (kind === NORMAL || kind === USER_DEFINED) {
      this.ids.set(piece, id);
      this.bytes[id] = [...new TextEncoder().encode(piece.replaceAll(SPACE, " "))];
    } else if (kind === BYTE) {
      this.byteIds.set(parseInt(piece.slice(3, 5), 16), id);
      this.bytes[id] = [parseInt(piece.slice(3, 5), 16)];
    }
  }

  // Begin with single characters. Merge the neighbours that form the subword of highest score, the leftmost of
  // several, until no neighbours form a subword. The end symbol is not added.
  encode(text) {
    if (text === "") return [];
    const symbols = [...(" " + escaped(text)).replaceAll(" ", SPACE)];
    for (;;) {
      let best = -Infinity, at = -1;
      for (let i = 0; i + 1 < symbols.length; i += 1) {
        const id = this.ids.get(symbols[i] + symbols[i + 1]);
        if (id !== undefined && this.scores[id] > best) [best, at] = [this.scores[id], i];
      }
      if (at < 0) break;
      symbols.splice(at, 2, symbols[at] + symbols[at + 1]);
    }
    return symbols.flatMap((one) => this.ids.get(one) ?? [...new TextEncoder().encode(one)].map((byte) => this.byteIds.get(byte)));
  }

  // The text of ids, without special symbols, incomplete characters and the space before the first word.
  decode(ids) {
    const bytes = new Uint8Array(ids.flatMap((id) => this.bytes[id]));
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes).replaceAll("\ufffd", "");
    return unescaped(text.replace(/^ /, ""));
  }
}

// The numbers and values of a protocol buffer's fields.
function* fields(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let at = 0;
  const integer = () => {
    for (let value = 0, unit = 1; ; unit *= 128) {
      const byte = bytes[at];
      at += 1;
      value += (byte % 128) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = integer(), kind = key % 8;
    let value = null;
    if (kind === 0) value = integer();
    else if (kind === 5) [value, at] = [view.getFloat32(at, true), at + 4];
    else if (kind === 2) {
      const length = integer();
      [value, at] = [bytes.subarray(at, at + length), at + length];
    } else throw new Error(`a protocol buffer with a field of kind ${kind}`);
    yield [Math.floor(key / 8), value];
  }
}
