// Requests to the server, in words for people if they fail. Paths are relative, so a prefix works.

export const at = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// --- the key ---------------------------------------------------------------------------------

const KEY = "api_key"; // the name that LibreTranslate uses as well

// Browsers may forbid storage. Then nothing is remembered.
export const stored = {
  get(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  },
  set(name, value) {
    try {
      if (value === null) localStorage.removeItem(name);
      else localStorage.setItem(name, value);
    } catch { /* not remembered */ }
  },
};

let key = stored.get(KEY) ?? "";
export const keyInUse = () => key;
export function useKey(value) {
  key = value.trim();
  stored.set(KEY, key || null);
}

// --- requests --------------------------------------------------------------------------------

export class Refusal extends Error {
  constructor(message, status, seconds) {
    super(message);
    Object.assign(this, { status, seconds });
  }
}

async function answered(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    // Browsers only report "Failed to fetch" or "network error".
    if (error instanceof TypeError) throw new Refusal("The server cannot be reached.", 0);
    throw error;
  }
  if (response.ok) return response;
  const { status, headers } = response;
  const said = await response.json().then(({ error }) => error, () => null); // a proxy may not send JSON
  throw new Refusal(explained(status, said), status, Number(headers.get("Retry-After")) || 0);
}

function explained(status, said) {
  if (status === 403 && /key/i.test(said)) return key ? "The server does not accept this key." : "This server requires an API key.";
  if (status === 413) return "The text is too long for this server.";
  if (status === 429) return "The server is busy.";
  if (status === 502 || status === 503 || status === 504) return "The server is not available right now.";
  return said?.replace(/^Invalid request: /, "") ?? `The server answered with status ${status}.`;
}

const authorization = () => (key ? { Authorization: `Bearer ${key}` } : {});

export async function getJson(path) {
  return (await answered(fetch(path, { headers: authorization() }))).json();
}

export function post(path, body, signal) {
  const headers = { "Content-Type": "application/json", ...authorization() };
  return answered(fetch(path, { method: "POST", headers, signal, body: JSON.stringify(body) }));
}

export async function ask(path, body, signal) {
  return (await post(path, body, signal)).json();
}

export async function send(path, form) {
  return (await answered(fetch(path, { method: "POST", headers: authorization(), body: form }))).json();
}

// --- features --------------------------------------------------------------------------------

let paths = new Set(); // of the OpenAPI document

export function offer(served) {
  paths = new Set(served);
}
export const offers = (path) => paths.has(path);

// --- patience --------------------------------------------------------------------------------

const PASSING = new Set([0, 429, 502, 503, 504]);
const FIRST_WAIT = 0.5, LONGEST_WAIT = 8; // seconds

// Try again, at growing intervals, while the server is busy or cannot be reached. `waiting(error, seconds)` is called
// before each interval.
export async function patiently(act, signal, waiting) {
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      return await act();
    } catch (error) {
      if (!PASSING.has(error.status) || signal.aborted) throw error;
      const seconds = Math.max(wait, Math.min(error.seconds ?? 0, LONGEST_WAIT));
      waiting(error, seconds);
      await sleep(seconds, signal);
    }
  }
}

function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
