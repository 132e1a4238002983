// The translation as words: which source words each comes from, how sure the model is, and other words.

import { ask, at, element } from "./api.js";
import { paragraphs } from "./stream.js";

export const DOUBT = 0.3; // words with a lower probability are underlined
const N_CHOICES = 6, N_ALTERNATIVES = 3;
const LONGEST = 3000; // characters whose words are described
const MOST_KNOWN = 200;

// --- sentences -------------------------------------------------------------------------------

// The server counts characters, JavaScript 16-bit units: an emoji is 1 or 2.
function inUnits({ source, text, words }) {
  const [ofSource, ofText] = [source, text].map((whole) => {
    const places = [0];
    for (const character of whole) places.push(places.at(-1) + character.length);
    return (offset) => places[offset];
  });
  return {
    source,
    text,
    words: words.map(({ start, end, probability, sources }) => ({
      start: ofText(start), end: ofText(end), probability, sources: sources.map((pair) => pair.map(ofSource)),
    })),
  };
}

// The sentences of /api/words with their positions in the text and in the translation. A sentence
// that is not found there (two engines may differ) stays plain text.
export function placed(sentences, q, text) {
  let [from, to] = [0, 0];
  return sentences.map(inUnits).flatMap((sentence) => {
    const [start, sourceStart] = [text.indexOf(sentence.text, to), q.indexOf(sentence.source, from)];
    if (start < 0 || sourceStart < 0 || !sentence.text) return [];
    [to, from] = [start + sentence.text.length, sourceStart + sentence.source.length];
    return [{ ...sentence, start, sourceStart, first: sentence.text }];
  });
}

const known = new Map(); // the sentences of paragraphs

// The sentences of a translation. A long text is requested by paragraph, so that other requests do
// not wait for it, and the end of a very long one stays plain text.
export async function loadWords({ q, source, target, text }, signal) {
  const sentences = [];
  for (const paragraph of paragraphs(q.slice(0, LONGEST))) {
    const name = JSON.stringify([paragraph, source, target]);
    const answer = known.get(name) ?? (await ask("api/words", { q: paragraph, source, target }, signal).catch(() => null));
    if (!answer) break;
    if (known.size > MOST_KNOWN) known.clear();
    known.set(name, answer);
    sentences.push(...answer.sentences);
  }
  return placed(sentences, q, text);
}

// The translation, and its sentences, with another text for one of them.
export function replaced(text, sentences, index, answered) {
  const { text: fresh, words } = inUnits(answered);
  const old = sentences[index];
  const growth = fresh.length - old.text.length;
  const next = sentences.map((one, place) => (place > index ? { ...one, start: one.start + growth } : one));
  next[index] = { ...old, text: fresh, words };
  return [text.slice(0, old.start) + fresh + text.slice(old.start + old.text.length), next];
}

// --- drawing ---------------------------------------------------------------------------------

export function drawWords(root, text, sentences) {
  const nodes = [];
  let end = 0;
  sentences.forEach((sentence, index) => {
    nodes.push(text.slice(end, sentence.start), drawSentence(sentence, index));
    end = sentence.start + sentence.text.length;
  });
  root.replaceChildren(...nodes, text.slice(end));
  root.querySelector(".word")?.setAttribute("tabindex", "0");
}

function drawSentence({ text, words }, index) {
  const nodes = [];
  let end = 0;
  words.forEach((word, place) => {
    const node = element("span", { className: "word", textContent: text.slice(word.start, word.end), tabIndex: -1 });
    Object.assign(node.dataset, { sentence: index, word: place, probability: word.probability.toFixed(4) });
    node.setAttribute("role", "button");
    node.setAttribute("aria-haspopup", "dialog");
    if (word.probability < DOUBT) {
      node.classList.add("doubt");
      node.setAttribute("aria-description", "the model is unsure");
    }
    nodes.push(text.slice(end, word.start), node);
    end = word.end;
  });
  return element("span", { className: "sentence" }, ...nodes, text.slice(end));
}

// Mark parts of the source text, given as pairs of positions, behind the text box.
export function markSource(ranges) {
  const text = at("text").value;
  const nodes = [];
  let end = 0;
  for (const [start, stop] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (start < end) continue;
    nodes.push(text.slice(end, start), element("mark", { textContent: text.slice(start, stop) }));
    end = stop;
  }
  // The last line counts only if something follows it.
  at("backdrop").replaceChildren(...nodes, `${text.slice(end)}\n`);
}

// --- pointing and choosing -------------------------------------------------------------------

// Words of `root` light up their source, and open the menu. `current()` returns {sentences, source,
// target}, and `replace(index, place, loading)` shows another translation of a sentence once it is
// loaded, and then focuses a word.
export function listenToWords(root, current, replace) {
  const of = (event) => event.target.closest?.(".word");
  const light = (node) => {
    const sentence = node && current().sentences[node.dataset.sentence];
    const word = sentence?.words[node.dataset.word];
    markSource((word?.sources ?? []).map((pair) => pair.map((offset) => offset + sentence.sourceStart)));
    for (const one of root.querySelectorAll(".lit")) one.classList.remove("lit");
    node?.classList.add("lit");
  };
  root.addEventListener("pointerover", (event) => light(of(event)));
  root.addEventListener("pointerleave", () => light(null));
  root.addEventListener("focusin", (event) => light(of(event)));
  root.addEventListener("focusout", () => light(null));
  root.addEventListener("click", (event) => {
    const selecting = getSelection().toString() && root.contains(getSelection().anchorNode);
    if (of(event) && !selecting) openMenu(root, of(event), current(), replace);
  });
  root.addEventListener("keydown", (event) => {
    const node = of(event);
    if (!node) return;
    const words = [...root.querySelectorAll(".word")];
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) focusWord(words, words[words.indexOf(node) + step] ?? node);
    else if (event.key === "Enter" || event.key === " ") openMenu(root, node, current(), replace);
    else return;
    event.preventDefault();
  });
}

function focusWord(words, node) {
  for (const word of words) word.tabIndex = word === node ? 0 : -1;
  node.focus();
}

let closing = null; // closes the open menu

export const closeMenu = () => closing?.abort();

function openMenu(root, node, { sentences, source, target }, replace) {
  closeMenu();
  if (!sentences.length) return; // the text has changed
  const own = (closing = new AbortController());
  const [index, place] = [Number(node.dataset.sentence), Number(node.dataset.word)];
  const sentence = sentences[index];
  const word = sentence.words[place];
  const menu = element("div", { className: "menu", tabIndex: -1 });
  menu.setAttribute("role", "dialog");
  menu.setAttribute("aria-label", `Other words for “${node.textContent}”`);
  const body = { q: sentence.source, source, target };
  const before = sentence.text.slice(0, word.start);
  const load = async (prefix) => (await ask("api/words", { ...body, prefix })).sentences[0];
  const show = (loading) => {
    closeMenu();
    replace(index, place, loading);
  };
  // The words of a whole translation, as far as the server finds them.
  const exactly = async (text) => {
    const found = await load(text);
    return found.text === text ? found : { source: sentence.source, text, words: [] };
  };
  const [others, whole] = [list("Other words"), list("This sentence")];
  menu.append(
    element("p", { className: "faint", textContent: `“${node.textContent}” ${percent(word.probability)}` }),
    others.group, whole.group,
  );
  fill(others, ask("api/choices", { ...body, prefix: before, n: N_CHOICES }, own.signal).then(({ choices }) =>
    choices.filter(({ text }) => text.trim() !== node.textContent).map(({ text, probability }) => [text, probability, () => show(load(before + text))])));
  fill(whole, ask("translate", { ...body, alternatives: N_ALTERNATIVES }, own.signal).then(({ translatedText, alternatives = [] }) =>
    [...new Set([sentence.first, translatedText, ...alternatives])].filter((text) => text !== sentence.text).map((text) => [text, null, () => show(exactly(text))])));
  root.parentElement.append(menu);
  node.classList.add("open");
  new ResizeObserver(() => put(menu, node)).observe(menu);
  put(menu, node);
  menu.focus();
  menu.addEventListener("keydown", (event) => moveIn(menu, event));
  own.signal.addEventListener("abort", () => {
    menu.remove();
    node.classList.remove("open");
    if (!document.activeElement || document.activeElement === document.body) node.focus();
  });
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) closeMenu(); }, { signal: own.signal });
}

const percent = (probability) => (probability < 0.01 ? "< 1 %" : `${Math.round(100 * probability)} %`);

function list(title) {
  const items = element("ul", {}, element("li", { className: "faint", textContent: "…" }));
  return { items, group: element("section", {}, element("h2", { textContent: title }), items) };
}

async function fill({ items, group }, loading) {
  const options = await loading.catch(() => []);
  group.hidden = !options.length;
  items.replaceChildren(...options.map(([text, probability, choose]) => {
    const button = element("button", { type: "button" }, element("span", { textContent: text }));
    if (probability !== null) button.append(element("span", { className: "faint", textContent: percent(probability) }));
    button.addEventListener("click", choose);
    return element("li", {}, button);
  }));
}

// Below the word, within the pane. On a narrow screen it is as wide as the pane.
function put(menu, node) {
  if (!menu.isConnected) return;
  const [pane, word] = [menu.parentElement.getBoundingClientRect(), node.getBoundingClientRect()];
  menu.style.top = `${word.bottom - pane.top + 6}px`;
  const left = Math.min(word.left - pane.left, pane.width - menu.offsetWidth - 8);
  menu.style.left = `${Math.max(8, left)}px`;
}

function moveIn(menu, event) {
  const buttons = [...menu.querySelectorAll("button")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
  if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else if (step) next?.focus();
  else return;
  event.preventDefault();
}
