// The attention explorer: kinds, layers and heads of a sentence, as lines, heat maps or thumbnails.
// The page of the server loads it, and `transept visualize` writes it into its HTML files.

import { drawHeat, drawOverview } from "./heat.js";
import { drawLines } from "./lines.js";
import { savePng, saveSvg } from "./save.js";
import { element, listen, same } from "./shapes.js";
import { KINDS, NOTES, plain, shown } from "./weights.js";

const VIEWS = { lines: "lines", heat: "heat map", overview: "all heads" };
const HELP = {
  lines: "Lines connect each word above (query) with the words below (keys) that it attends to. The width of a line shows the weight, its colour the head.",
  heat: "A row shows the words that a word attends to. A stronger colour is a larger weight,",
  overview: "Each picture is a head, as a heat map. Choose one to see its lines.",
};
const KEYS = "Point at a word to show only its weights. Click or press Enter to keep it selected, and Escape to clear the selection. Tab moves to the words, the arrow keys from word to word.";

// --- the state in the address ----------------------------------------------------------------

export function toParameters({ kind, layer, heads, view, tokens, sinks, pinned }) {
  const numbers = [...heads].sort((a, b) => a - b).join(".");
  return { kind, layer, heads: numbers, view, tokens, sinks: sinks ? "on" : "off", ...(pinned && { word: `${pinned.side}.${pinned.number}` }) };
}

export function fromParameters(given, usual) {
  const read = (name, valid) => (valid(given.get(name)) ? given.get(name) : usual[name]);
  const numbers = (text) => (text ?? "").split(".").filter(Boolean).map(Number);
  const [side, number] = numbers(given.get("word"));
  return {
    kind: read("kind", (value) => Object.hasOwn(KINDS, value)),
    view: read("view", (value) => Object.hasOwn(VIEWS, value)),
    tokens: read("tokens", (value) => ["words", "pieces"].includes(value)),
    layer: Number(read("layer", (value) => Number(value) >= 1)),
    heads: new Set(given.has("heads") ? numbers(given.get("heads")) : usual.heads),
    sinks: given.has("sinks") ? given.get("sinks") !== "off" : usual.sinks,
    pinned: number >= 0 && side >= 0 ? { side, number } : usual.pinned,
  };
}

// --- controls --------------------------------------------------------------------------------

// The name of a control within the explorer.
function nameOf(node) {
  const legend = node?.closest?.(".controls fieldset")?.firstChild;
  return legend && `${legend.textContent}: ${node.value || node.textContent}`;
}

let groups = 0;

// Radio buttons, or check boxes if `chosen` is a set.
function choices(title, options, chosen, choose) {
  const [name, many] = [`choice-${groups += 1}`, chosen instanceof Set];
  const labels = options.map(([value, text, colour]) => {
    const input = element("input", { type: many ? "checkbox" : "radio", name, value, checked: many ? chosen.has(value) : chosen === value });
    input.addEventListener("change", () => choose(value, input.checked));
    const label = element("label", {}, input, element("span", { textContent: text }));
    if (colour !== undefined) label.style.setProperty("--own", `var(--chart-${colour % 8})`);
    return label;
  });
  return element("fieldset", {}, element("legend", { textContent: title }), ...labels);
}

function button(text, act) {
  const node = element("button", { type: "button", textContent: text });
  node.addEventListener("click", act);
  return node;
}

// --- the explorer ----------------------------------------------------------------------------

// Show the attention of a sentence in `root`. `mapOf(kind)` returns or resolves to
// {queries, keys, weights}, and `changed(state)` is called after each change.
export async function explore(root, { mapOf, state, changed = () => {}, name = "attention" }) {
  const controls = element("form", { className: "controls" });
  const canvas = element("div", { className: "picture" });
  const said = element("p", { className: "said" });
  said.setAttribute("role", "status");
  const help = element("p", { className: "help" });
  let map = await mapOf(state.kind);
  let drawing = null;
  const nHeads = map.weights[0].length;
  const heads = Array.from({ length: nHeads }, (_, index) => index + 1);
  // As in the paper, the second to last layer is the first to be shown.
  const usual = () => Math.max(1, map.weights.length - 1);
  const withinRange = () => { state.layer = Math.min(state.layer || usual(), map.weights.length); };
  withinRange();
  state.heads = new Set([...state.heads].filter((head) => heads.includes(head)));

  async function change(values) {
    const kind = state.kind;
    Object.assign(state, values);
    if (state.kind !== kind) map = await mapOf(state.kind);
    withinRange();
    offer();
    draw();
    changed(state);
  }

  // The figures of the paper: encoder self-attention in the second to last layer.
  function figure(number) {
    const words = shown(map, { ...state, sinks: false }).queries;
    const longest = words.reduce((best, word) => (word.text.length > best.text.length ? word : best), words[0]);
    const kept = state.pinned?.side === 0 && state.kind === "encoder" ? state.pinned : null;
    const word = kept ?? (longest && { side: 0, number: longest.number });
    const chosen = { 3: heads, 4: heads.slice(0, 2), 5: heads.slice(0, 2) }[number];
    return { kind: "encoder", view: "lines", layer: usual(), heads: new Set(chosen), pinned: number === 5 ? null : word };
  }

  function offer() {
    const focused = nameOf(document.activeElement);
    const all = state.view === "overview";
    const sinks = new Set(state.sinks ? [] : ["hide"]);
    const ofHeads = choices("Heads", heads.map((head) => [head, String(head), head - 1]), state.heads, (head, on) => {
      const set = new Set(state.heads);
      if (on) set.add(head); else set.delete(head);
      change({ heads: set });
    });
    for (const input of ofHeads.querySelectorAll("input")) input.setAttribute("aria-label", `Head ${input.value}`);
    ofHeads.append(button("all", () => change({ heads: new Set(heads) })), button("none", () => change({ heads: new Set() })));
    const presets = element("fieldset", { className: "presets" }, element("legend", { textContent: "Paper" }),
      ...[3, 4, 5].map((number) => button(`Figure ${number}`, async () => {
        if (state.kind !== "encoder") await change({ kind: "encoder", pinned: null });
        change(figure(number));
      })));
    const saving = element("fieldset", { className: "presets" }, element("legend", { textContent: "Save" }),
      button("SVG", () => saveSvg(drawing.svg, name)), button("PNG", () => savePng(drawing.svg, name)));
    controls.replaceChildren(
      choices("Attention", Object.entries(KINDS), state.kind, (kind) => change({ kind, pinned: null })),
      choices("View", Object.entries(VIEWS), state.view, (view) => change({ view })),
      ...(all ? [] : [choices("Layer", map.weights.map((_, index) => [index + 1, String(index + 1)]), state.layer, (layer) => change({ layer })), ofHeads]),
      choices("Tokens", [["words", "words"], ["pieces", "subwords"]], state.tokens, (tokens) => change({ tokens, pinned: null })),
      choices("Sinks", [["hide", "hide . and </s>"]], sinks, (_, on) => change({ sinks: !on })),
      presets,
      ...(all ? [] : [saving]),
    );
    help.textContent = all ? HELP.overview : `${HELP.lines} ${NOTES[state.kind]} ${KEYS}`;
    // The controls are new elements, so the focus moves to the one with the same name.
    if (focused) [...controls.querySelectorAll("input, button")].find((node) => nameOf(node) === focused)?.focus();
  }

  function draw() {
    const view = shown(map, state);
    const chosen = [...state.heads].sort((a, b) => a - b);
    said.textContent = "";
    if (state.view === "overview") {
      canvas.replaceChildren(drawOverview(view, map.weights.length, nHeads, (layer, head) => change({ layer, heads: new Set([head]), view: "lines" })));
      return;
    }
    if (!view.queries.length || !view.keys.length || (!chosen.length && state.view === "heat")) {
      canvas.replaceChildren(element("p", { className: "said", textContent: "Nothing is selected. Choose a head." }));
      return;
    }
    drawing = (state.view === "heat" ? drawHeat : drawLines)(view, state.layer, chosen, root.clientWidth || 900);
    const show = (one) => {
      const at = one ?? state.pinned;
      const weights = drawing.show(at, state.pinned);
      said.textContent = at ? sentence(view, at, weights) : "";
    };
    const pin = ({ side, number }) => {
      state.pinned = same(state.pinned, { side, number }) ? null : { side, number };
      show(state.pinned ?? { side, number });
      changed(state);
    };
    listen(drawing.svg, { show, pin });
    canvas.replaceChildren(drawing.svg);
    if (state.view === "heat") help.textContent = `${HELP.heat} up to ${drawing.full.toFixed(2)} here. ${KEYS}`;
    show(null);
  }

  controls.addEventListener("submit", (event) => event.preventDefault());
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.pinned) change({ pinned: null });
  });
  root.replaceChildren(controls, canvas, said, help);
  offer();
  draw();
}

function sentence(view, one, weights) {
  const word = (one.side === 0 ? view.queries : view.keys).find(({ number }) => number === one.number);
  if (!word) return "";
  const most = weights.filter(({ weight }) => weight >= 5e-4).sort((a, b) => b.weight - a.weight).slice(0, 5)
    .map(({ head, word: other, weight }) => `“${plain(other)}” ${weight.toFixed(3)} (head ${head})`);
  if (!most.length) return `No selected head connects “${plain(word.text)}” with another word.`;
  return `“${plain(word.text)}” ${one.side === 0 ? "attends most to" : "is attended to most by"} ${most.join(", ")}`;
}
