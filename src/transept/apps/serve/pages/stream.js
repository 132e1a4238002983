// A translation as it is written: server-sent events of /api/stream.

import { post, Refusal } from "./api.js";

async function* events(response) {
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [name, data] = part.split("\n");
      yield [name.slice("event: ".length), JSON.parse(data.slice("data: ".length))];
    }
  }
}

// The paragraphs of a text, each with the blank lines after it. They are translated independently.
export const paragraphs = (text) => text.split(/(?<=\n[^\S\n]*\n)(?=\S)/);

// Translate, and call `show(written, tail, rest)` for each part. `tail` may still change. Paragraphs at the beginning
// and at the end that an earlier result already has are not translated again.
export async function translate(body, before, signal, show) {
  const { head, q, rest } = changedPart(body, before);
  if (!q.trim()) return { text: head + q + rest, sentences: 0 };
  const whole = await translateAll({ ...body, q }, signal, (written, tail) => show(head + written, tail, rest));
  return { text: head + whole.text + rest, sentences: head || rest ? 0 : whole.sentences };
}

function changedPart({ q, source, target }, before) {
  const [now, old] = [paragraphs(q), paragraphs(before?.q ?? "")];
  const texts = paragraphs(before?.text ?? "");
  if (before?.source !== source || before.target !== target || old.length !== texts.length) return { head: "", q, rest: "" };
  const least = Math.min(now.length, old.length);
  let [first, last] = [0, 0];
  while (first < least && now[first] === old[first]) first += 1;
  while (last < least - first && now.at(-1 - last) === old.at(-1 - last)) last += 1;
  return {
    head: texts.slice(0, first).join(""),
    q: now.slice(first, now.length - last).join(""),
    rest: texts.slice(texts.length - last).join(""),
  };
}

async function translateAll(body, signal, show) {
  const response = await post("api/stream", body, signal);
  let [written, whole] = ["", null];
  try {
    for await (const [name, data] of events(response)) {
      if (name === "part") show((written += data.text), data.tail);
      if (name === "error") throw new Refusal(data.error, 500);
      if (name === "done") whole = data;
    }
  } catch (error) {
    if (error instanceof TypeError) throw new Refusal("The connection to the server was lost.", 0);
    throw error;
  }
  if (whole === null) throw new Refusal("The connection to the server was lost.", 0);
  return whole;
}
