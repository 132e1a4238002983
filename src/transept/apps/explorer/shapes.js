// Elements of HTML and SVG, the text of pictures, and their words as buttons.

const SVG = "http://www.w3.org/2000/svg";
export const FONT = 14;
const N_COLOURS = 8; // further heads reuse the colours, with dashed lines
const pen = document.createElement("canvas").getContext("2d");
pen.font = `${FONT}px system-ui, "DejaVu Sans", sans-serif`;

export const colourOf = (head) => `var(--chart-${(head - 1) % N_COLOURS})`;
export const isDashed = (head) => head > N_COLOURS;
// A selected word is bold, and must not move the others.
export const widthOf = (text) => pen.measureText(text).width * 1.1;

export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

export function make(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent?.append(node);
  return node;
}

export function picture(width, height, label) {
  const box = `-4 -4 ${width + 8} ${height + 8}`;
  return make("svg", { width: width + 8, height: height + 8, viewBox: box, tabindex: "-1", role: "group", "aria-label": label });
}

// A word that can be focused: `side` is 0 for a query, 1 for a key. Only the first is in the tab order.
export function addWord(svg, { text, number, side, first, box, x, y, anchor, upright }) {
  const label = text.replace(/^·+/, "") || text;
  const word = make("g", { class: "word", tabindex: first ? "0" : "-1", role: "button", "aria-label": label, "data-side": side, "data-number": number }, svg);
  make("rect", { x: box[0], y: box[1], width: box[2], height: box[3], rx: 4 }, word);
  const turned = upright ? { transform: `rotate(-90 ${x} ${y})` } : {};
  make("text", { x, y, dy: ".35em", "text-anchor": anchor, ...turned }, word, text);
}

// Call `show` with the word that is pointed at or focused, and `pin` with one that is clicked.
export function listen(svg, { show, pin }) {
  const of = (event) => {
    const node = event.target.closest?.(".word");
    return node && { side: Number(node.dataset.side), number: Number(node.dataset.number), node };
  };
  const on = (name, act) => svg.addEventListener(name, (event) => { const one = of(event); if (one) act(one, event); });
  on("pointerover", show);
  on("focusin", (one) => { if (one.node.matches(":focus-visible")) show(one); });
  on("click", pin);
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("focusout", () => show(null));
  on("keydown", (one, event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const row = [...svg.querySelectorAll(`.word[data-side="${one.side}"]`)];
      const next = row[row.indexOf(one.node) + step];
      if (next) { one.node.setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus(); }
    } else if (event.key === "Enter" || event.key === " ") pin(one);
    else return;
    event.preventDefault();
  });
}

export const same = (a, b) => Boolean(a && b && a.side === b.side && a.number === b.number);

// Mark one word, and fade the others of its row.
export function mark(svg, one, pinned) {
  svg.classList.toggle("one", Boolean(one));
  for (const node of svg.querySelectorAll(".word")) {
    const own = { side: Number(node.dataset.side), number: Number(node.dataset.number) };
    node.classList.toggle("on", same(own, one));
    node.classList.toggle("off", one?.side === own.side && one.number !== own.number);
    node.setAttribute("aria-pressed", String(same(own, pinned)));
  }
}
