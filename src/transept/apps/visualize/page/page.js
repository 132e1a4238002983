// A file that contains all weights of a sentence. The state is kept in the fragment of its address.

import { explore, fromParameters, toParameters } from "../../explorer/explorer.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { word, ...chosen } = data.chosen;
const usual = { ...chosen, view: "lines", sinks: true, pinned: word === null ? null : { side: 0, number: word } };

function mapOf(kind) {
  const { weights, ...words } = data.maps[kind];
  const scaled = (part) => (Array.isArray(part) ? part.map(scaled) : part / data.unit);
  return { ...words, weights: scaled(weights) };
}

for (const side of ["source", "target"]) document.getElementById(side).textContent = data[side];
explore(document.getElementById("explorer"), {
  mapOf,
  state: fromParameters(new URLSearchParams(location.hash.slice(1)), usual),
  changed: (state) => history.replaceState(null, "", `#${new URLSearchParams(toParameters(state))}`),
});
