// The address of the page as a link to its translation, copying, and examples for an empty page.

import { at, element } from "./api.js";
import { DETECT, languages } from "./languages.js";

const LONGEST_LINK = 2000; // characters of the query string
const EXAMPLES = {
  en: ["Where is the nearest station?", "The dog did not cross the road because it was too tired.", "Thank you for your letter of last week. I will reply as soon as I can."],
  de: ["Wo ist der nächste Bahnhof?", "Der Hund ging nicht über die Straße, weil er zu müde war.", "Vielen Dank für Ihren Brief. Ich antworte Ihnen so bald wie möglich."],
};

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS, and not on localhost, browsers only offer this older clipboard API.
    const box = element("textarea", { value: text, className: "unseen" });
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}

function query() {
  const given = new URLSearchParams({ source: at("source").value, target: at("target").value });
  if (at("text").value) given.set("q", at("text").value);
  return given;
}

const isTooLong = (given) => given.toString().length > LONGEST_LINK;

export function updateAddress() {
  const given = query();
  if (isTooLong(given)) given.delete("q");
  history.replaceState(null, "", `?${given}${location.hash}`);
}

// The link to this translation, or null if it would be too long.
export const linkHere = () => (isTooLong(query()) ? null : `${location.origin}${location.pathname}?${query()}`);

// Buttons with sentences in the source language.
export function offerExamples(write) {
  const source = at("source").value === DETECT ? languages()[0]?.code : at("source").value;
  at("chips").replaceChildren(...(EXAMPLES[source] ?? []).map((text) => {
    const chip = element("button", { type: "button", textContent: text, lang: source });
    chip.addEventListener("click", () => { write(text); at("text").focus(); });
    return chip;
  }));
}
