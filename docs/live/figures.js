// Fills Figures 1 and 2, which the site draws for a recorded run, with the numbers of another run.

import { headOf, weightsOf } from "./trace.js";

const N_SHOWN = 64; // the first numbers of each vector
const POSITIVE = [0x15, 0x83, 0xc4], NEGATIVE = [0xd5, 0x5e, 0x00];

// A matrix as the address of an image with one pixel per number. `scale` has the full colour; by default it is three
// times the root mean square.
export function picture(rows, scale) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.min(N_SHOWN, rows[0].length), rows.length];
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(canvas.width, canvas.height);
  const numbers = rows.flatMap((row) => [...row.slice(0, N_SHOWN)]);
  const full = scale ?? (3 * Math.sqrt(numbers.reduce((sum, x) => sum + x * x, 0) / numbers.length) || 1);
  numbers.forEach((x, n) => {
    image.data.set([...(x >= 0 ? POSITIVE : NEGATIVE), Math.min(1, Math.abs(x) / full) * 255], 4 * n);
  });
  pen.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

const short = (text, longest = 32) => (text.length <= longest ? text : `${text.slice(0, longest - 1)}…`);
export const visible = (piece) => piece.replaceAll("▁", "·");

function fill(root, slot, rows, scale) {
  for (const image of root.querySelectorAll(`[data-slot="${slot}"]`)) image.setAttribute("href", picture(rows, scale));
  for (const shape of root.querySelectorAll(`[data-shape="${slot}"]`)) shape.textContent = `(${rows.length}, ${rows[0].length})`;
}

function write(root, slot, text) {
  for (const node of root.querySelectorAll(`[data-text="${slot}"]`)) node.textContent = text;
}

// `layers` has the shown layer of each stack, from 0, and `depths` their numbers of layers.
export function fillFigure1(root, { sequences, source, output, depths }, layers) {
  for (const [stack, parts] of [["encoder", ["attended", "output"]], ["decoder", ["masked", "attended", "output"]]]) {
    fill(root, `${stack}.input`, sequences[`${stack}.input`]);
    for (const part of parts) fill(root, `${stack}.${part}`, sequences[`${stack}.${layers[stack]}.${part}`]);
    write(root, `${stack}.depth`, `layer ${layers[stack] + 1} of N = ${depths[stack]}`);
  }
  write(root, "source", short(source));
  write(root, "output", short(output));
}

// The likeliest next subwords, [piece, p], of a step.
export function fillWords(root, likely) {
  likely.slice(0, 5).forEach(([piece, p], n) => {
    root.querySelector(`[data-bar="${n}"]`).setAttribute("width", 1 + 49 * p);
    write(root, `p${n}`, p.toFixed(2));
    write(root, `word${n}`, short(visible(piece), 10));
  });
}

export function fillFigure2(root, attention, head, h, name) {
  const { output, ...parts } = headOf(attention, head, h);
  for (const [part, rows] of Object.entries({ ...parts, head: output })) fill(root, `attention.${part}`, rows, part === "weights" ? 1 : undefined);
  for (let n = 0; n < h; n += 1) fill(root, `attention.weights.${n}`, weightsOf(attention, n), 1);
  fill(root, "attention.concat", attention.heads);
  fill(root, "attention.output", attention.output);
  write(root, "attention", name);
}
