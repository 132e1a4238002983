// The page of the server: a translation form, and the API documentation from /openapi.json.
// Data from the server and the user is inserted as text, never as markup.

const at = (id) => document.getElementById(id);

function element(name, content = "", className = "") {
  const made = document.createElement(name);
  made.append(...[content].flat());
  if (className) made.className = className;
  return made;
}

async function getJson(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(await refusal(response));
  return response.json();
}

async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (at("key").value) headers.Authorization = `Bearer ${at("key").value}`;
  const response = await fetch(path, { method: "POST", headers, signal, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await refusal(response));
  return response;
}

// The error message of a response. A proxy in front of the server may not send JSON.
async function refusal(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `The server answered ${response.status} ${response.statusText}. Try again later.`;
  }
}

// Browsers only report "Failed to fetch" or "network error".
function explained(error) {
  return error instanceof TypeError ? "The server cannot be reached. Is it still running?" : error.message;
}

// --- translation -----------------------------------------------------------------------------

const DETECT = "auto";
let languages = [];
let abort = null;

const named = (code) => languages.find((language) => language.code === code);

function fill(select, options) {
  select.replaceChildren(...options.map(([code, name]) => new Option(name, code)));
}

function offerTargets() {
  const read = named(at("source").value);
  const codes = read?.targets ?? new Set(languages.flatMap(({ targets }) => targets));
  fill(at("target"), [...codes].map((code) => [code, named(code).name]));
  offerSwap();
}

// The selected languages. If the source language is detected, the target may have to change.
async function pairFor(text, signal) {
  const [source, target] = [at("source").value, at("target").value];
  if (source !== DETECT) return { source, target };
  const [{ language }] = await (await post("/detect", { q: text }, signal)).json();
  const { targets } = named(language);
  return { source: language, target: targets.includes(target) ? target : (targets[0] ?? target) };
}

function showStatus(message, fault = false) {
  at("state").textContent = message;
  at("state").classList.toggle("fault", fault);
}

// Show the final part of the translation, and the tail that may still change.
function show(written, tail) {
  at("written").textContent = written;
  at("tail").textContent = tail;
  at("copy").hidden = at("looks").hidden = true;
}

async function copy() {
  try {
    await navigator.clipboard.writeText(at("written").textContent);
  } catch {
    // Without TLS, and not on localhost, browsers only offer this older clipboard API.
    getSelection().selectAllChildren(at("written"));
    document.execCommand("copy");
  }
  showStatus("Copied.");
}

function offerSwap() {
  at("swap").hidden = !named(at("target").value)?.targets.includes(at("source").value);
}

function swap() {
  const [source, target] = [at("source").value, at("target").value];
  at("source").value = target;
  offerTargets();
  at("target").value = source;
  if (at("written").textContent) at("text").value = at("written").textContent;
  show("", "");
  showStatus("");
  offerSwap();
}

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

async function translate(event) {
  event.preventDefault();
  abort?.abort();
  abort = new AbortController();
  const { signal } = abort;
  const text = at("text").value;
  const begun = performance.now();
  let written = "";
  show("", "");
  at("result").ariaBusy = "true"; // screen readers announce it when it is complete
  showStatus("Translating …");
  try {
    const body = { q: text, ...(await pairFor(text, signal)) };
    at("result").lang = at("target").value = body.target;
    const response = await post("/api/stream", body, signal);
    for await (const [name, data] of events(response)) {
      if (name === "part") show((written += data.text), data.tail);
      if (name === "error") throw new Error(data.error);
      if (name === "done") {
        show(data.text, "");
        at("copy").hidden = !data.text;
        // Several sentences are translated separately, so they have no common attention.
        if (data.text && data.sentences === 1) offerAttention({ ...body, translation: data.text });
        const seconds = `${((performance.now() - begun) / 1000).toFixed(2)} s`;
        showStatus(at("source").value === DETECT ? `from ${named(body.source).name}, ${seconds}` : seconds);
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") showStatus(written ? `Incomplete. ${explained(error)}` : explained(error), true);
  }
  if (!signal.aborted) at("result").ariaBusy = "false";
}

// --- attention -------------------------------------------------------------------------------

const MEAN = "mean";
let pair = null; // the translation whose attention can be shown
let seen = null; // the response of /api/attention, once requested

function offerAttention(translated) {
  [pair, seen] = [translated, null];
  at("looks").hidden = false;
  loadAttention();
}

// Requested only when the section is open, because it runs the model again.
async function loadAttention() {
  if (!at("looks").open || seen) return;
  const asked = pair;
  at("weights").replaceChildren();
  at("looks-state").textContent = "Loading …";
  try {
    const answer = await (await post("/api/attention", asked)).json();
    if (asked !== pair) return;
    seen = answer;
    at("looks-state").textContent = "Rows are target words, columns are source words. A stronger colour is a larger weight.";
    offerHeads(seen);
    drawWeights();
  } catch (error) {
    at("looks-state").textContent = explained(error);
  }
}

// Default: the last layer and the mean of its heads. An earlier selection is kept.
function offerHeads({ layers, heads }) {
  const chosen = [at("layer").value || layers.at(-1), at("head").value || MEAN];
  fill(at("layer"), layers.map((layer) => [layer, layer]));
  fill(at("head"), [[MEAN, "mean of all"], ...heads.map((head) => [head, head])]);
  [at("layer").value, at("head").value] = chosen;
}

function drawWeights() {
  const { queries, keys, weights } = seen.attention.source;
  const ofLayer = weights[seen.layers.indexOf(Number(at("layer").value))];
  const head = at("head").value;
  const ofHeads = head === MEAN ? ofLayer : [ofLayer[seen.heads.indexOf(Number(head))]];
  const weight = (q, k) => ofHeads.reduce((sum, rows) => sum + rows[q][k], 0) / ofHeads.length;
  const columns = keys.words.map((word) => element("th", element("span", word)));
  const rows = queries.words.map((word, q) =>
    element("tr", [element("th", word), ...keys.words.map((key, k) => cell(word, key, weight(q, k)))]),
  );
  at("weights").replaceChildren(element("table", [element("tr", [element("td"), ...columns]), ...rows]));
}

function cell(query, key, weight) {
  const made = element("td");
  made.title = made.ariaLabel = `${query} to ${key}: ${Math.round(100 * weight)} %`;
  made.style.setProperty("--weight", `${100 * weight}%`);
  return made;
}

// --- parsing ---------------------------------------------------------------------------------

function indented({ label, word, children }, before = "") {
  if (!children) return `${before}(${label} ${word})`;
  const inner = children.map((child) => indented(child, `${before}  `));
  return `${before}(${label}\n${inner.join("\n")})`;
}

async function parse(event) {
  event.preventDefault();
  at("tree").textContent = "Parsing …";
  try {
    const response = await post("/api/parse", { q: at("sentence").value });
    const [{ outputs }] = (await response.json()).parses;
    at("tree").textContent = outputs.length ? indented(outputs[0].tree) : "";
  } catch (error) {
    at("tree").textContent = explained(error);
  }
}

// --- API documentation -----------------------------------------------------------------------

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.filter((value) => value !== null).map((value) => JSON.stringify(value)).join(" or ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((name) => name !== "null").join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type ?? "any";
}

// Text with `code` in code elements.
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", part) : part));
}

function fields(schema, schemas, optional) {
  const inner = schema.items ?? schema;
  const whole = inner.$ref ? schemas[inner.$ref.split("/").pop()] : inner;
  const table = element("table");
  for (const [name, field] of Object.entries(whole.properties ?? {})) {
    const needed = whole.required?.includes(name) ? "" : optional;
    const what = [element("span", typeOf(field) + needed, "faint")];
    if (field.description) what.push(element("br"), ...prose(field.description));
    table.append(element("tr", [element("td", element("code", name)), element("td", what)]));
  }
  return table;
}

function answered({ description, content }, schemas) {
  const [kind, { schema }] = Object.entries(content)[0];
  const what = schema ? typeOf(schema) : kind;
  const details = element("details", [element("summary", `Response: ${what}`)]);
  if (!schema) details.append(element("p", prose(description)));
  else details.append(fields(schema, schemas, " (optional)"));
  return details;
}

function describe({ paths, components }) {
  const articles = Object.entries(paths).map(([path, methods]) => {
    const [method, operation] = Object.entries(methods)[0];
    const article = element("article", [
      element("h3", element("code", `${method.toUpperCase()} ${path}`)),
      element("p", operation.summary),
    ]);
    const body = operation.requestBody?.content["application/json"].schema;
    if (body) article.append(fields(body, components.schemas, " (optional)"));
    article.append(answered(operation.responses[200], components.schemas));
    return article;
  });
  at("paths").replaceChildren(...articles);
}

// --- models ----------------------------------------------------------------------------------

const FACTS = { engine: "Engine", imported_from: "Imported from", format: "Format", licence: "Licence" };

function describeModel({ source, targets, ...facts }) {
  const names = targets.map((code) => named(code).name).join(", ");
  const known = Object.entries(FACTS).filter(([key]) => facts[key]);
  const about = known.map(([key, name]) => `${name}: ${facts[key]}.`).join(" ");
  return element("li", [`${named(source).name} to ${names}. `, element("span", about, "faint")]);
}

async function begin() {
  languages = await getJson("/languages");
  at("models").replaceChildren(...(await getJson("/api/models")).map(describeModel));
  const settings = await getJson("/frontend/settings");
  const described = await getJson("/openapi.json");
  describe(described);
  at("waiting").hidden = true;
  at("key-field").hidden = !settings.keyRequired;
  at("tree-form").hidden = !("/api/parse" in described.paths);
  if (settings.language) offerTranslation(settings);
}

function offerTranslation(settings) {
  at("form").hidden = at("example").hidden = false;
  const read = languages.filter(({ targets }) => targets.length);
  const offered = read.map(({ code, name }) => [code, name]);
  const { source, target } = settings.language;
  fill(at("source"), read.length > 1 ? [[DETECT, "detect language"], ...offered] : offered);
  offerTargets();
  at("target").value = target.code;
  const sent = JSON.stringify({ q: "Good morning.", source: source.code, target: target.code });
  const key = settings.keyRequired ? "  -H 'Authorization: Bearer KEY' \\\n" : "";
  at("example").textContent =
    `curl ${location.origin}/translate \\\n${key}  -H 'Content-Type: application/json' \\\n  -d '${sent}'`;
  // On a phone, focus would open the keyboard over the page.
  if (!settings.keyRequired && matchMedia("(pointer: fine)").matches) at("text").focus();
}

at("source").addEventListener("change", offerTargets);
at("target").addEventListener("change", offerSwap);
at("swap").addEventListener("click", swap);
at("copy").addEventListener("click", copy);
at("looks").addEventListener("toggle", loadAttention);
at("layer").addEventListener("change", drawWeights);
at("head").addEventListener("change", drawWeights);
at("form").addEventListener("submit", translate);
at("tree-form").addEventListener("submit", parse);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
begin().catch((error) => {
  at("waiting").textContent = explained(error);
});
