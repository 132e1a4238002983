// The training dashboard: the curves of all runs, overlaid, and their sample translations over time.

import { at, element, getJson } from "./api.js";
import { drawChart } from "./chart.js";

const SECONDS = 2; // between two requests for new lines
const MOST_OUTPUTS = 12; // sample translations of a run, evenly spread over its steps
const CHARTS = [
  { title: "Validation loss", kind: "validation", key: "nll", unit: "nats per token", isSteep: true },
  { title: "BLEU", kind: "quality", key: "bleu", unit: "development set" },
  { title: "chrF", kind: "quality", key: "chrf", unit: "development set" },
  { title: "Training loss", kind: "step", key: "nll", unit: "nats per token", isSteep: true },
  { title: "Learning rate", kind: "step", key: "lr", unit: "" },
  { title: "Speed", kind: "step", key: "tokens_per_second", unit: "target tokens per second" },
];

class Run {
  constructor({ name, config }, number) {
    Object.assign(this, { name, config, colour: `var(--chart-${number % 8})`, isShown: true });
    this.restart();
  }

  restart() {
    this.next = 0;
    this.points = { step: [], validation: [], quality: [] };
    this.spent = { minutes: 0, target_tokens: 0 };
  }

  // Read the new lines. True if there are any.
  async follow() {
    for (let isNew = false; ; isNew = true) {
      const found = await getJson(`api/runs/${encodeURIComponent(this.name)}/metrics?from=${this.next}`);
      if (found.from < this.next) this.restart(); // the log was rewritten
      if (!found.lines.length) return isNew;
      for (const line of found.lines) this.add(line);
      this.next = found.next;
    }
  }

  // Only lines of steps have the time and the tokens. The others have those of the step before.
  add(line) {
    if (line.kind === "step") this.spent = { minutes: line.seconds / 60, target_tokens: line.target_tokens };
    this.points[line.kind]?.push({ ...line, ...this.spent });
  }

  curve({ kind, key }, axis) {
    const known = this.points[kind].filter((point) => Number.isFinite(point[key]));
    return known.map((point) => [point[axis], point[key]]);
  }
}

// --- drawing ---------------------------------------------------------------------------------

function draw(runs) {
  const axis = at("axis").value;
  const shown = runs.filter((run) => run.isShown);
  const charts = CHARTS.map((chart) => {
    const curves = shown.map((run) => ({ name: run.name, colour: run.colour, points: run.curve(chart, axis) }));
    const known = curves.filter(({ points }) => points.length);
    return known.length ? drawChart(chart, known, at("axis").selectedOptions[0].text) : null;
  });
  at("charts").replaceChildren(...charts.filter(Boolean));
  drawSamples(shown);
}

function drawSamples(runs) {
  const sources = new Map(); // source to reference
  for (const { points } of runs)
    for (const { samples } of points.quality)
      for (const { source, reference } of samples ?? []) sources.set(source, reference);
  at("samples").hidden = !sources.size;
  const before = at("sample").value;
  at("sample").replaceChildren(...[...sources.keys()].map((text) => element("option", { textContent: text, value: text })));
  if (sources.has(before)) at("sample").value = before;
  const source = at("sample").value;
  at("reference").textContent = sources.size ? `Reference: ${sources.get(source)}` : "";
  at("outputs").replaceChildren(...runs.flatMap((run) => rows(run, source)));
}

function rows(run, source) {
  const found = run.points.quality.flatMap(({ step, samples }) =>
    (samples ?? []).filter((sample) => sample.source === source).map(({ output }) => ({ step, output })));
  const every = Math.max(1, Math.ceil(found.length / MOST_OUTPUTS));
  return found.filter((_, index) => (found.length - 1 - index) % every === 0).map(({ step, output }) => element("tr", {},
    element("th", { scope: "row", textContent: run.name }),
    element("td", { textContent: step.toLocaleString("en") }),
    element("td", { textContent: output, dir: "auto" })));
}

function choices(runs, redraw) {
  return runs.map((run) => {
    const box = element("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => { run.isShown = box.checked; redraw(); });
    const swatch = element("span", { className: "swatch" });
    swatch.style.background = run.colour;
    return element("label", {}, box, swatch, element("b", { textContent: run.name }),
      element("span", { className: "faint", textContent: run.config }));
  });
}

// --- following -------------------------------------------------------------------------------

async function follow(runs) {
  if (document.hidden) return;
  try {
    const isNew = await Promise.all(runs.map((run) => run.follow()));
    at("waiting").hidden = true;
    if (isNew.some(Boolean)) draw(runs);
  } catch (error) {
    say(error.message);
  }
}

function say(text) {
  at("waiting").textContent = text;
  at("waiting").hidden = false;
}

async function start() {
  let runs;
  try {
    runs = (await getJson("api/runs")).map((run, number) => new Run(run, number));
  } catch (error) {
    say(error.message);
    return;
  }
  if (!runs.length) {
    say("This server follows no training run. Start it with --run DIR.");
    return;
  }
  at("chosen").append(...choices(runs, () => draw(runs)));
  at("board").hidden = false;
  for (const id of ["axis", "sample"]) at(id).addEventListener("change", () => draw(runs));
  for (;;) {
    await follow(runs);
    await new Promise((resolve) => { setTimeout(resolve, 1000 * SECONDS); });
  }
}

start();
