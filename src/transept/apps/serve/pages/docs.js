// The API reference, from /openapi.json, and the models.

import { at, element, getJson } from "./api.js";

const JSON_TYPE = "application/json";
const FACTS = { engine: "Engine", imported_from: "Imported from", format: "Format", licence: "Licence" };

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.filter((value) => value !== null).map((value) => JSON.stringify(value)).join(" or ");
  if (schema.anyOf) return schema.anyOf.map(typeOf).filter((name) => name !== "null").join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.type ?? "any";
}

// Text with `code` in code elements.
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", { textContent: part }) : part));
}

function fields(schema, schemas) {
  const inner = schema.items ?? schema;
  const whole = inner.$ref ? schemas[inner.$ref.split("/").pop()] : inner;
  const rows = Object.entries(whole.properties ?? {}).map(([name, field]) => {
    const needed = whole.required?.includes(name) ? "" : " (optional)";
    const what = element("td", {}, element("span", { className: "faint", textContent: typeOf(field) + needed }));
    if (field.description) what.append(element("br"), ...prose(field.description));
    return element("tr", {}, element("th", { scope: "row" }, element("code", { textContent: name })), what);
  });
  return element("table", {}, ...rows);
}

function answered({ description, content = {} }, schemas) {
  const [kind, { schema } = {}] = Object.entries(content)[0] ?? ["nothing"];
  const details = element("details", {}, element("summary", { textContent: `Response: ${schema ? typeOf(schema) : kind}` }));
  details.append(schema ? fields(schema, schemas) : element("p", {}, ...prose(description)));
  return details;
}

function describePath(path, [method, operation], schemas) {
  const title = `${method.toUpperCase()} ${path}`;
  const article = element("article", { id: path.slice(1).replaceAll("/", "-") },
    element("h3", {}, element("code", { textContent: title })),
    element("p", {}, ...prose(operation.summary)));
  const bodies = operation.requestBody?.content ?? {};
  const body = (bodies[JSON_TYPE] ?? Object.values(bodies)[0])?.schema;
  if (body) article.append(fields(body, schemas));
  article.append(answered(operation.responses[200], schemas));
  return article;
}

function describe({ paths, components }) {
  const articles = Object.entries(paths).map(([path, methods]) => describePath(path, Object.entries(methods)[0], components.schemas));
  at("paths").replaceChildren(...articles);
  at("contents").replaceChildren(...articles.map((article) =>
    element("a", { href: `#${article.id}`, textContent: article.querySelector("code").textContent })));
}

function describeModel({ source, targets, ...facts }, nameOf) {
  const known = Object.entries(FACTS).filter(([key]) => facts[key]);
  const about = known.map(([key, name]) => `${name}: ${facts[key]}.`).join(" ");
  return element("li", {}, `${nameOf(source)} to ${targets.map(nameOf).join(", ")}. `, element("span", { className: "faint", textContent: about }));
}

function example({ language, keyRequired }) {
  if (!language) return;
  const sent = JSON.stringify({ q: "Good morning.", source: language.source.code, target: language.target.code });
  const key = keyRequired ? "  -H 'Authorization: Bearer KEY' \\\n" : "";
  at("example").hidden = false;
  at("example").textContent =
    `curl ${new URL("translate", document.baseURI)} \\\n${key}  -H 'Content-Type: application/json' \\\n  -d '${sent}'`;
}

async function begin() {
  const [languages, models, settings, described] = await Promise.all(
    ["languages", "api/models", "frontend/settings", "openapi.json"].map(getJson));
  const nameOf = (code) => languages.find((one) => one.code === code)?.name ?? code;
  at("models").replaceChildren(...models.map((model) => describeModel(model, nameOf)));
  example(settings);
  describe(described);
  at("waiting").hidden = true;
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

begin().catch((error) => { at("waiting").textContent = error.message; });
