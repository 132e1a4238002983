// The page of the server: translates while the user types.
// Data from the server and the user is inserted as text, never as markup.

import { at, element, getJson, keyInUse, offer, offers, patiently, useKey } from "./api.js";
import { offerFiles } from "./files.js";
import { chosenSource, detectPair, fillLanguages, languages, offerTargets, swapped } from "./languages.js";
import { offerLook, look } from "./look.js";
import { offerParsing } from "./parse.js";
import { forget, offerHistory, remember } from "./past.js";
import { copy, linkHere, offerExamples, updateAddress } from "./share.js";
import { translate } from "./stream.js";
import { closeMenu, drawWords, listenToWords, loadWords, markSource, placed, replaced } from "./words.js";

const PAUSE = 250; // milliseconds without a key press before a translation begins
let limit = Infinity;
let timer = null;
let job = new AbortController(); // aborts the translation, and the request for its words
let isRunning = false;
let result = null; // the translation that is shown, once it is whole: {q, source, target, text, sentences}

const countOf = (text) => [...text].length; // as the server counts

// --- text ------------------------------------------------------------------------------------

// As if it were typed, so that the browser can undo it.
function write(text) {
  const box = at("text"), focused = document.activeElement;
  box.focus({ preventScroll: true });
  box.select();
  const command = text ? ["insertText", false, text] : ["delete", false];
  if (!document.execCommand(...command)) {
    box.setRangeText(text, 0, box.value.length, "end");
    changed();
  }
  if (focused instanceof HTMLButtonElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function count() {
  const n = countOf(at("text").value);
  const over = n - limit;
  at("count").textContent = `${n.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
  at("count").classList.toggle("fault", over > 0);
  at("text").setAttribute("aria-invalid", String(over > 0));
  if (over > 0) say(`The text is ${over.toLocaleString("en")} ${over === 1 ? "character" : "characters"} too long.`, true);
  return over <= 0;
}

// Whether an event of the text box is one of many. Pasted text is translated at once.
function isTyping({ inputType = "", data = null } = {}) {
  return /^(delete|insertComposition|insertLineBreak)/.test(inputType) || (inputType === "insertText" && (data ?? "").length <= 1);
}

function changed(event) {
  const text = at("text").value;
  closeMenu();
  markSource([]);
  clearTimeout(timer);
  stop();
  forget();
  at("clear").hidden = !text;
  at("chips").hidden = Boolean(text);
  markStale();
  const fits = count();
  if (!text.trim()) {
    show("", "");
    result = null;
    at("looks-like").textContent = "";
    at("look").hidden = true;
    updateAddress();
    finish("");
  } else if (fits) {
    timer = setTimeout(run, isTyping(event) ? PAUSE : 0);
  }
}

// --- translation -----------------------------------------------------------------------------

function say(message, fault = false) {
  at("state").textContent = message;
  at("state").classList.toggle("fault", fault);
}

function stop() {
  job.abort();
  isRunning = false;
}

const isCurrent = () => result !== null && result.q === at("text").value && !isRunning;

function markStale() {
  at("result").classList.toggle("stale", Boolean(result) && result.q !== at("text").value);
}

// Show the final part of the translation, the tail that may still change, and the rest that an
// earlier translation had. If that begins in the same way, nothing moves while the user types at the end.
function show(written, tail, rest = "") {
  closeMenu();
  const begun = written + tail;
  const same = begun && !rest && result?.text.startsWith(begun) ? result.text.slice(begun.length) : "";
  const parts = [[written, ""], [tail + same, "tail"], [rest, ""]].filter(([text]) => text);
  at("result").replaceChildren(...parts.map(([textContent, className]) => element("span", { textContent, className })));
  at("result").classList.remove("stale");
  at("hint").hidden = true;
}

function finish(message, fault) {
  const done = isCurrent() && Boolean(result.text);
  at("copy").hidden = at("share").hidden = !done;
  at("result").style.minHeight = "";
  at("result").ariaBusy = "false";
  say(message, fault);
}

async function run() {
  clearTimeout(timer);
  stop();
  const q = at("text").value;
  if (!q.trim() || !count()) return;
  const { signal } = (job = new AbortController());
  isRunning = true;
  // The pane does not shrink while a new translation grows.
  at("result").style.minHeight = `${at("result").offsetHeight}px`;
  at("result").ariaBusy = "true";
  at("copy").hidden = at("share").hidden = true;
  let begun = false;
  const begins = performance.now();
  try {
    const waiting = (error, seconds) => say(`${begun ? "Incomplete. " : ""}${error.message} Trying again in ${Math.ceil(seconds)} s.`, true);
    const whole = await patiently(async () => {
      const pair = await detectPair(q, signal, at("looks-like"));
      at("text").lang = pair.source;
      at("result").lang = pair.target;
      say("Translating …");
      const { text, sentences } = await translate({ q, ...pair }, result, signal, (...parts) => { begun = true; show(...parts); });
      const alone = [{ source: q.trim(), text: text.trim(), words: [] }];
      return { q, ...pair, text, sentences: sentences === 1 ? placed(alone, q, text) : [] };
    }, signal, waiting);
    isRunning = false;
    arrive(whole, `Translated in ${((performance.now() - begins) / 1000).toFixed(2)} s.`);
    await addWords(result, signal);
  } catch (error) {
    if (signal.aborted) return;
    isRunning = false;
    finish(begun ? `Incomplete. ${error.message}` : error.message, true);
    if (error.status === 403) offerKey();
  }
}

function arrive(whole, message) {
  result = whole;
  show(result.text, "");
  at("spoken").textContent = result.text;
  finish(message);
  updateAddress();
  remember({ q: result.q, source: result.source, target: result.target, text: result.text });
}

async function addWords(whole, signal) {
  const sentences = offers("/api/words") ? await loadWords(whole, signal) : [];
  if (result !== whole || !isCurrent()) return;
  if (sentences.length) result.sentences = sentences;
  drawResult();
}

function drawResult() {
  const { text, sentences } = result;
  drawWords(at("result"), text, sentences.some(({ words }) => words.length) ? sentences : []);
  at("hint").hidden = !at("result").querySelector(".word");
  at("doubts").hidden = !at("result").querySelector(".doubt");
  at("look").hidden = !sentences.length;
  if (sentences.length) look(result);
}

// Show another translation of a sentence.
async function replaceSentence(index, place, loading) {
  const before = result;
  try {
    const fresh = await loading;
    if (result !== before || !isCurrent()) return;
    const [text, sentences] = replaced(before.text, before.sentences, index, fresh);
    result = { ...before, text, sentences };
    drawResult();
    at("result").querySelector(`.word[data-sentence="${index}"][data-word="${place}"]`)?.focus();
    remember({ q: result.q, source: result.source, target: result.target, text });
    say("The sentence was translated again.");
  } catch (error) {
    say(error.message, true);
  }
}

function swap() {
  const whole = isCurrent() ? result.text : "";
  stop();
  clearTimeout(timer);
  swapped(result);
  offerExamples(write);
  if (whole) write(whole);
  else changed();
}

// --- start -----------------------------------------------------------------------------------

function offerKey() {
  at("key-form").hidden = false;
  at("key").value = keyInUse();
}

function offerTranslation(settings) {
  at("translator").hidden = false;
  limit = settings.charLimit > 0 ? settings.charLimit : Infinity;
  fillLanguages(settings.language);
  const given = new URLSearchParams(location.search);
  if (given.has("source")) chosenSource(given.get("source"));
  offerTargets(given.get("target"));
  offerExamples(write);
  if (settings.filesTranslation) offerFiles(settings.supportedFilesFormat, () => ({ source: at("source").value, target: at("target").value }));
  if (given.get("q")) write(given.get("q"));
  else changed();
  // On a phone, focus would open the keyboard over the page.
  if (!settings.keyRequired && matchMedia("(pointer: fine)").matches) at("text").focus();
}

function listen() {
  at("text").addEventListener("input", changed);
  at("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  });
  at("source").addEventListener("change", () => { offerTargets(); offerExamples(write); changed(); });
  at("target").addEventListener("change", () => { offerTargets(at("target").value); changed(); });
  at("swap").addEventListener("click", swap);
  at("clear").addEventListener("click", () => { write(""); at("text").focus(); });
  at("copy").addEventListener("click", async () => { await copy(result.text); say("Copied."); });
  at("share").addEventListener("click", async () => {
    const link = linkHere();
    if (link) await copy(link);
    say(link ? "The link is copied." : "The text is too long for a link.", !link);
  });
  at("key-form").addEventListener("submit", (event) => { event.preventDefault(); useKey(at("key").value); run(); });
  listenToWords(at("result"), () => (isCurrent() ? result : { sentences: [] }), replaceSentence);
  offerHistory(({ q, source, target }) => { chosenSource(source); offerTargets(target); write(q); });
  offerLook();
}

async function begin() {
  const [served, settings, { paths }] = await Promise.all(["languages", "frontend/settings", "openapi.json"].map(getJson));
  languages(served);
  offer(Object.keys(paths));
  at("waiting").hidden = true;
  if (settings.keyRequired) offerKey();
  listen();
  if (settings.language) offerTranslation(settings);
  if (offers("/api/parse")) offerParsing();
  getJson("api/runs").then((runs) => { at("runs-link").hidden = !runs.length; }, () => {}); // without a key, no link
}

const waiting = (error, seconds) => { at("waiting").textContent = `${error.message} Trying again in ${Math.ceil(seconds)} s.`; };
patiently(begin, new AbortController().signal, waiting).catch((error) => { at("waiting").textContent = error.message; });
