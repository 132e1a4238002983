// Look inside: the attention and the beam search of one sentence. The state is in the fragment of the address.

import { ask, at, element, offers } from "./api.js";
import { drawBeam } from "./beam.js";
import { explore, fromParameters, toParameters } from "./explorer.js";

const PATHS = { attention: "/api/attention", beam: "/api/beam" };
const USUAL = { kind: "source", view: "lines", tokens: "words", layer: 0, heads: [1, 2, 3, 4, 5, 6, 7, 8], sinks: false, pinned: null };
let tabs = [];
let result = null;
let state = null; // of the attention explorer
let tab = null;
let drawn = null; // what is shown now, so that it is not drawn twice

const fragment = () => new URLSearchParams(location.hash.slice(1));

function remember() {
  const open = at("look").open;
  const parameters = { look: tab, sentence: at("look-sentence").value || 0, ...(tab === "attention" && toParameters(state)) };
  history.replaceState(null, "", `${location.search}${open ? `#${new URLSearchParams(parameters)}` : ""}` || location.pathname);
}

// Show a translation: {source, target, sentences}.
export function look(translated) {
  const before = at("look-sentence").value || fragment().get("sentence") || "0";
  result = translated;
  at("look-sentence").replaceChildren(...result.sentences.map(({ source }, index) => new Option(source, index)));
  at("look-sentence").value = result.sentences[before] ? before : "0";
  at("look-choice").hidden = result.sentences.length < 2;
  load();
}

async function load() {
  if (!at("look").open || !result?.sentences?.length) return;
  const { source, target } = result;
  const sentence = result.sentences[Number(at("look-sentence").value)];
  const body = { q: sentence.source, source, target };
  const wanted = JSON.stringify([tab, body, sentence.text]);
  if (drawn === wanted) return;
  drawn = wanted;
  const panel = element("div");
  panel.ariaBusy = "true";
  try {
    if (tab === "attention") await loadAttention(panel, body, sentence.text, () => drawn === wanted);
    else {
      const record = await ask("api/beam", body);
      if (drawn === wanted) showPanel(panel);
      drawBeam(panel, record, sentence.text);
    }
  } catch (error) {
    if (drawn !== wanted) return;
    drawn = null;
    panel.append(element("p", { className: "faint", textContent: error.message }));
    showPanel(panel);
  }
  panel.ariaBusy = "false";
  remember();
}

function showPanel(panel) {
  at(`panel-${tab}`).replaceChildren(panel);
}

async function loadAttention(panel, body, translation, isWanted) {
  const maps = {};
  const mapOf = async (kind) => (maps[kind] ??= await attention({ ...body, translation, tokens: "pieces", kinds: [kind] }, kind));
  await mapOf(state.kind);
  if (!isWanted()) return;
  showPanel(panel);
  await explore(panel, { mapOf, state, changed: remember });
}

// A response has a limited number of weights. A long sentence needs a request per layer.
async function attention(body, kind) {
  try {
    return (await ask("api/attention", body)).attention[kind];
  } catch (error) {
    if (!/limit/.test(error.message)) throw error;
  }
  const first = (await ask("api/attention", { ...body, layers: [1] })).attention[kind];
  for (let layer = 2; ; layer += 1) {
    try {
      first.weights.push(...(await ask("api/attention", { ...body, layers: [layer] })).attention[kind].weights);
    } catch (error) {
      if (/out of range/.test(error.message)) return first;
      throw error;
    }
  }
}

function choose(name, focus = false) {
  tab = name;
  for (const one of tabs) {
    const button = at(`tab-${one}`);
    button.setAttribute("aria-selected", String(one === tab));
    button.tabIndex = one === tab ? 0 : -1;
    at(`panel-${one}`).hidden = one !== tab;
  }
  if (focus) at(`tab-${tab}`).focus();
  if (result) load();
}

export function offerLook() {
  const given = fragment();
  tabs = Object.keys(PATHS).filter((name) => offers(PATHS[name]));
  for (const name of Object.keys(PATHS)) at(`tab-${name}`).hidden = !tabs.includes(name);
  state = fromParameters(given, USUAL);
  if (tabs.includes(given.get("look"))) at("look").open = true;
  choose(tabs.includes(given.get("look")) ? given.get("look") : tabs[0]);
  at("look").addEventListener("toggle", () => {
    drawn = null;
    if (at("look").open) load();
    else remember();
  });
  at("look-sentence").addEventListener("change", () => { state.pinned = null; load(); });
  for (const name of tabs) {
    at(`tab-${name}`).addEventListener("click", () => choose(name));
    at(`tab-${name}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) choose(tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length], true);
    });
  }
}
