// A chart of several curves, as SVG. The nearest points are named where the pointer is.

import { element } from "./api.js";
import { make } from "./shapes.js";

const WIDTH = 560, HEIGHT = 250, LEFT = 56, RIGHT = 12, TOP = 10, BOTTOM = 34;
const MOST_POINTS = 280; // of a curve: neighbouring points are averaged
const N_TICKS = 5;

// Means of neighbouring points, so that a long curve is as fast to draw as a short one.
function thinned(points) {
  const size = Math.ceil(points.length / MOST_POINTS);
  if (size < 2) return points;
  const groups = Array.from({ length: Math.ceil(points.length / size) }, (_, n) => points.slice(n * size, (n + 1) * size));
  return groups.map((group) => [0, 1].map((side) => group.reduce((sum, point) => sum + point[side], 0) / group.length));
}

// Round numbers that cover a range.
function ticks(low, high) {
  const rough = (high - low) / N_TICKS || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step) found.push(value);
  return found;
}

export function shown(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))} k`;
  return size && size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

// The range of the values. The steep first points of a loss are left out: they would hide the rest.
function range(values, isSteep) {
  const sorted = [...values].sort((a, b) => a - b);
  const share = isSteep && sorted.length > 40 ? 0.97 : 1;
  const low = sorted[0], high = sorted[Math.floor(share * (sorted.length - 1))];
  return low === high ? [low - 1e-9 - Math.abs(low) * 0.05, high + 1e-9 + Math.abs(high) * 0.05] : [low, high];
}

function axes(svg, [x0, x1], [y0, y1], x, y, below) {
  for (const value of ticks(y0, y1)) {
    make("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value), class: "grid" }, svg);
    make("text", { x: LEFT - 8, y: y(value), dy: ".35em", "text-anchor": "end" }, svg, shown(value));
  }
  for (const value of ticks(x0, x1)) make("text", { x: x(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, svg, shown(value));
  make("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, svg, below);
}

// `curves` are {name, colour, points}, and points are [x, y] in the order of x.
export function drawChart({ title, unit, isSteep }, curves, below) {
  const thin = curves.map((curve) => ({ ...curve, points: thinned(curve.points) }));
  const xs = thin.flatMap(({ points }) => points.map(([x]) => x));
  const across = [Math.min(0, ...xs), Math.max(...xs) || 1];
  const up = range(thin.flatMap(({ points }) => points.map(([, y]) => y)), isSteep);
  const x = (value) => LEFT + ((value - across[0]) / (across[1] - across[0])) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((value - up[0]) / (up[1] - up[0])) * (HEIGHT - TOP - BOTTOM);
  const latest = curves.map(({ name, points }) => `${name} ${shown(points.at(-1)[1])}`).join(", ");
  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. Latest: ${latest}` });
  axes(svg, across, up, x, y, below);
  for (const { name, colour, points } of thin) {
    const path = points.filter((point) => point[1] <= up[1]).map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`).join(" ");
    make("polyline", { points: path, class: "curve", stroke: colour, "data-run": name }, svg);
    if (points.length === 1) make("circle", { cx: x(points[0][0]), cy: y(points[0][1]), r: 3, fill: colour }, svg);
  }
  const said = element("figcaption", {}, element("b", { textContent: title }), unit ? ` ${unit}` : "",
    element("output", { className: "faint", textContent: latest }));
  const figure = element("figure", {}, said, svg);
  name(svg, thin, x, said.lastChild, latest);
  return figure;
}

// Say the values at the pointer, and mark the place.
function name(svg, curves, x, output, latest) {
  const cursor = make("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor", visibility: "hidden" }, svg);
  svg.addEventListener("pointermove", (event) => {
    const { left, width } = svg.getBoundingClientRect();
    const here = ((event.clientX - left) / width) * WIDTH;
    const near = curves.map(({ name: run, points }) => [run, points.reduce((best, point) => (Math.abs(x(point[0]) - here) < Math.abs(x(best[0]) - here) ? point : best))]);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(near[0][1][0]));
    cursor.setAttribute("visibility", "visible");
    output.textContent = near.map(([run, point]) => `${run} ${shown(point[1])} at ${shown(point[0])}`).join(", ");
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    output.textContent = latest;
  });
}
