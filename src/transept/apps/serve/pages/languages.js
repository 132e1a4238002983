// The two languages: choosing, detecting and swapping them.

import { ask, at } from "./api.js";

export const DETECT = "auto";
const UNKNOWN = 15; // below this total confidence in percent, the text is in none of the served languages
const SURE = 50;
const LEAST_LETTERS = 12; // shorter texts are too short to say so
let served = [];
let usual = null; // the languages of the first model
let detected = null;

export function languages(given) {
  if (given) served = given;
  return served;
}

export const named = (code) => served.find((one) => one.code === code);
const sources = () => served.filter(({ targets }) => targets.length);

function fill(select, options) {
  select.replaceChildren(...options.map(([code, name]) => new Option(name, code)));
}

export function fillLanguages(pair) {
  usual = pair;
  const options = sources().map(({ code, name }) => [code, name]);
  fill(at("source"), options.length > 1 ? [[DETECT, "Detect language"], ...options] : options);
}

export function chosenSource(code) {
  if ([...at("source").options].some(({ value }) => value === code)) at("source").value = code;
}

// Offer the targets of the source, and choose one of them. The swap needs a model in the other direction.
export function offerTargets(wanted = at("target").value || usual?.target.code) {
  const source = at("source").value;
  const codes = named(source)?.targets ?? [...new Set(served.flatMap(({ targets }) => targets))];
  fill(at("target"), codes.map((code) => [code, named(code).name]));
  if (codes.includes(wanted)) at("target").value = wanted;
  else if (codes.includes(usual?.target.code)) at("target").value = usual.target.code;
  showDetected(source === DETECT ? detected : null);
  const [from, to] = [other(), at("target").value];
  at("swap").disabled = !named(to)?.targets.includes(from);
  at("swap").title = at("swap").disabled ? `No model translates ${named(to)?.name} to ${named(from)?.name}` : "Swap the languages";
}

// The language that a swap makes the target.
function other() {
  if (at("source").value !== DETECT) return at("source").value;
  const target = at("target").value;
  if (detected && detected !== target) return detected;
  return sources().find(({ targets }) => targets.includes(target))?.code;
}

function showDetected(code) {
  detected = code;
  const option = at("source").options[0];
  if (option?.value === DETECT) option.textContent = code ? `${named(code).name} (detected)` : "Detect language";
}

export function swapped(result) {
  const [from, to] = [result?.source ?? other(), at("target").value];
  chosenSource(to);
  offerTargets(from);
}

// The languages of a text. If the source language is detected, the target may have to change.
export async function detectPair(q, signal, note) {
  const [source, target] = [at("source").value, at("target").value];
  note.textContent = "";
  if (source !== DETECT) return { source, target };
  const guesses = await ask("detect", { q, others: true }, signal);
  const known = guesses.filter(({ language }) => named(language)?.targets.length);
  const total = known.reduce((sum, { confidence }) => sum + confidence, 0);
  const letters = q.match(/\p{L}/gu)?.length ?? 0;
  if (total < UNKNOWN && letters >= LEAST_LETTERS) note.textContent = unknown(guesses);
  const found = choose(known);
  const { targets } = named(found);
  const fitting = targets.includes(target) ? target : targets[0];
  showDetected(found);
  offerTargets(fitting);
  return { source: found, target: fitting };
}

// Short texts are ambiguous: the language does not change with every letter.
function choose(known) {
  const [best] = known;
  const before = known.find(({ language }) => language === detected);
  if (before && best.confidence < SURE && 2 * before.confidence > best.confidence) return detected;
  return best.confidence > 0 ? best.language : (detected ?? usual.source.code);
}

function unknown(guesses) {
  const names = new Intl.ListFormat("en").format(sources().map(({ name }) => name));
  const [other] = guesses
    .filter(({ language }) => !named(language)?.targets.length)
    .sort((one, another) => another.confidence - one.confidence);
  const name = other && new Intl.DisplayNames("en", { type: "language" }).of(other.language);
  return `This ${name ? `looks like ${name}` : "looks like another language"}. This server translates ${names}.`;
}
