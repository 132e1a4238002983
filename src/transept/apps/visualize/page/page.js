
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const FONT = 14, SPACE = 16, GUTTER = 8, WIDEST_ROW = 900, STRIP = 8;
  const LEAST_SLOT = 22, MOST_SLOT = 34;
  const state = { ...data.chosen, heads: new Set(data.chosen.heads), pinned: null };

  const byId = (id) => document.getElementById(id);
  const same = (a, b) => Boolean(a && b && a.side === b.side && a.number === b.number);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const plain = (piece) => piece.replace(/^·+/, "") || piece;
  const visible = (piece) => piece.replaceAll("▁", "·");

  function make(name, attributes, parent, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  // --- data ----------------------------------------------------------------------------------

  // Merge subwords into words: sum over the keys, mean over the queries.
  function joined(weights, queries, keys) {
    const counts = queries.words.map(() => 0);
    const rows = queries.words.map(() => keys.words.map(() => 0));
    weights.forEach((row, query) => {
      const word = queries.word_of[query];
      counts[word] += 1;
      row.forEach((weight, key) => { rows[word][keys.word_of[key]] += weight; });
    });
    return rows.map((row, word) => row.map((weight) => weight / counts[word]));
  }

  function shown() {
    const map = data.maps[state.kind];
    const asWords = state.tokens === "words";
    const heads = [...state.heads].sort((a, b) => a - b);
    return {
      queries: (asWords ? map.queries.words : map.queries.pieces).map(visible),
      keys: (asWords ? map.keys.words : map.keys.pieces).map(visible),
      heads,
      weights: heads.map((head) => {
        const whole = map.weights[state.layer - 1][head - 1].map((row) => row.map((w) => w / data.unit));
        return asWords ? joined(whole, map.queries, map.keys) : whole;
      }),
    };
  }

  // --- layout --------------------------------------------------------------------------------

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${FONT}px system-ui, "DejaVu Sans", sans-serif`;
  // A selected word is bold, and must not move the others.
  const widthOf = (text) => pen.measureText(text).width * 1.06;
  // The lines of many heads need some width even at a full stop.
  const slotOf = (text) => Math.max(widthOf(text), 2 * FONT) + SPACE;

  function rowOf(words, slot) {
    if (slot) {
      const centres = words.map((_, number) => (number + 0.5) * slot);
      return { centres, slot, width: words.length * slot, height: Math.max(...words.map(widthOf)) };
    }
    let x = 0;
    const centres = words.map((word) => {
      const width = slotOf(word);
      x += width;
      return x - width / 2;
    });
    return { centres, slot: Math.min(...words.map(slotOf)), width: x, height: FONT * 1.3 };
  }

  // --- drawing -------------------------------------------------------------------------------

  function draw() {
    const view = shown();
    const widths = [view.queries, view.keys].map((words) => sum(words.map(slotOf)));
    const upright = Math.max(...widths) > WIDEST_ROW;
    const most = Math.max(view.queries.length, view.keys.length);
    const slot = upright ? Math.min(Math.max(LEAST_SLOT, WIDEST_ROW / most), MOST_SLOT) : 0;
    const [above, below] = [view.queries, view.keys].map((words) => rowOf(words, slot));
    const width = Math.max(above.width, below.width);
    const gap = Math.min(Math.max(0.24 * width, 150), 300);
    const top = above.height + 2 * GUTTER, bottom = top + gap;
    const height = bottom + STRIP + 3 * GUTTER + below.height;
    const xs = [above, below].map((row) => row.centres.map((x) => x + (width - row.width) / 2));

    const svg = make("svg", { width: width + 8, height: height + 8, viewBox: `-4 -4 ${width + 8} ${height + 8}`, tabindex: "-1", role: "group", "aria-label": "Queries above, keys below" });
    const [all, some] = [0, 1].map(() => make("g", { "aria-hidden": "true" }, svg));
    const column = (Math.min(above.slot, below.slot) * 0.8) / Math.max(view.heads.length, 1);
    const shift = (number) => (number - (view.heads.length - 1) / 2) * column;

    function words(row, texts, side, y, size) {
      texts.forEach((text, number) => {
        const x = xs[side][number];
        const box = upright ? [x - slot / 2, y, slot, size] : [x - slotOf(text) / 2, y, slotOf(text), size];
        const word = make("g", { class: "word", tabindex: number === 0 ? "0" : "-1", role: "button", "aria-label": `${plain(text)}, ${number + 1} of ${texts.length}`, "data-side": side, "data-number": number }, svg);
        make("rect", { x: box[0], y: box[1], width: box[2], height: box[3], rx: 4 }, word);
        const at = upright ? (side === 0 ? y + size - 4 : y + 4) : y + size / 2;
        const anchor = upright ? (side === 0 ? "start" : "end") : "middle";
        make("text", { x, y: at, dy: ".35em", "text-anchor": anchor, ...(upright ? { transform: `rotate(-90 ${x} ${at})` } : {}) }, word, text);
      });
    }
    words(above, view.queries, 0, 0, above.height + GUTTER);
    words(below, view.keys, 1, bottom + STRIP + GUTTER, below.height + GUTTER);

    // The lines of all words, or of one word with a strip of cells that shows its weights per head.
    function fill(group, one) {
      const seen = [];
      view.heads.forEach((head, number) => {
        const colour = `var(--h${(head - 1) % data.colours})`;
        view.weights[number].forEach((row, query) => row.forEach((weight, key) => {
          const chosen = !one || (one.side === 0 ? one.number === query : one.number === key);
          if (!chosen || weight < data.faintest) return;
          const [x1, x2] = [xs[0][query] + shift(number), xs[1][key] + shift(number)];
          const line = make("line", { x1, y1: top, x2, y2: bottom, "stroke-width": (data.line_width * weight).toFixed(3), "stroke-opacity": (0.4 + 0.6 * weight).toFixed(2) }, group);
          line.style.stroke = colour;
          if (head > data.colours) line.setAttribute("stroke-dasharray", "7 4");
          if (!one) return;
          seen.push({ head, word: one.side === 0 ? view.keys[key] : view.queries[query], weight });
          const [x, y] = one.side === 0 ? [x2, bottom + 2] : [x1, top - STRIP - 2];
          const cell = make("rect", { x: x - column / 2, y, width: column, height: STRIP, "fill-opacity": weight.toFixed(3) }, group);
          cell.style.fill = colour;
        }));
      });
      return seen;
    }

    function show(one) {
      some.replaceChildren();
      // There can be many lines, so they are created once and hidden while one word is shown.
      if (!one && !all.hasChildNodes()) fill(all, null);
      all.setAttribute("display", one ? "none" : "inline");
      svg.classList.toggle("one", Boolean(one));
      for (const word of svg.querySelectorAll(".word")) {
        const own = { side: Number(word.dataset.side), number: Number(word.dataset.number) };
        word.classList.toggle("on", same(own, one));
        word.classList.toggle("off", one?.side === own.side && one.number !== own.number);
        word.setAttribute("aria-pressed", String(same(own, state.pinned)));
      }
      byId("said").textContent = one ? said(view, one, fill(some, one)) : "";
    }

    const of = (event) => {
      const word = event.target.closest?.(".word");
      return word ? { side: Number(word.dataset.side), number: Number(word.dataset.number), node: word } : null;
    };
    const toggle = (one) => { state.pinned = same(state.pinned, one) ? null : { side: one.side, number: one.number }; show(state.pinned ?? one); };
    svg.addEventListener("pointerover", (event) => { const one = of(event); if (one) show(one); });
    svg.addEventListener("pointerleave", () => show(state.pinned));
    svg.addEventListener("focusin", (event) => { const one = of(event); if (one?.node.matches(":focus-visible")) show(one); });
    svg.addEventListener("focusout", () => show(state.pinned));
    svg.addEventListener("click", (event) => { const one = of(event); if (one) toggle(one); });
    svg.addEventListener("keydown", (event) => {
      const one = of(event);
      if (!one) return;
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        const next = svg.querySelector(`.word[data-side="${one.side}"][data-number="${one.number + step}"]`);
        if (next) { one.node.setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus(); }
      } else if (event.key === "Enter" || event.key === " ") toggle(one);
      else return;
      event.preventDefault();
    });
    byId("picture").replaceChildren(svg);
    state.show = show;
    show(state.pinned);
  }

  function said(view, one, seen) {
    const word = plain((one.side === 0 ? view.queries : view.keys)[one.number]);
    if (!seen.length) return `No selected head connects “${word}” with another word.`;
    const most = seen.sort((a, b) => b.weight - a.weight).slice(0, 5)
      .map(({ head, word: other, weight }) => `“${plain(other)}” ${weight.toFixed(3)} (head ${head})`);
    return `“${word}” ${one.side === 0 ? "attends most to" : "is attended to most by"} ${most.join(", ")}`;
  }

  // --- selection -----------------------------------------------------------------------------

  function choices(id, type, options, isChosen, choose) {
    for (const [value, text, colour] of options) {
      const label = document.createElement("label"), input = document.createElement("input"), span = document.createElement("span");
      Object.assign(input, { type, name: id, value, checked: isChosen(value) });
      if (type === "checkbox") input.setAttribute("aria-label", `head ${value}`);
      span.textContent = text;
      if (colour !== undefined) { label.style.setProperty("--own", `var(--h${colour})`); label.style.setProperty("--on", `var(--on${colour})`); }
      input.addEventListener("change", () => { choose(value, input.checked); describe(); draw(); });
      label.append(input, span);
      byId(id).append(label);
    }
  }

  function describe() {
    byId("note").textContent = data.notes[state.kind];
  }

  const first = data.maps.encoder.weights;
  const heads = first[0].map((_, number) => number + 1);
  byId("source").textContent = data.source;
  byId("target").textContent = data.target;
  choices("kinds", "radio", Object.entries(data.names), (kind) => kind === state.kind,
    (kind) => { state.kind = kind; state.pinned = null; });
  choices("layers", "radio", first.map((_, number) => [number + 1, number + 1]), (layer) => layer === state.layer,
    (layer) => { state.layer = layer; });
  choices("heads", "checkbox", heads.map((head) => [head, head, (head - 1) % data.colours]),
    (head) => state.heads.has(head), (head, on) => { if (on) state.heads.add(head); else state.heads.delete(head); });
  choices("tokens", "radio", [["words", "words"], ["pieces", "pieces"]], (tokens) => tokens === state.tokens,
    (tokens) => { state.tokens = tokens; state.pinned = null; });

  for (const [text, chosen] of [["all", heads], ["none", []]]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text });
    button.addEventListener("click", () => {
      state.heads = new Set(chosen);
      for (const input of byId("heads").querySelectorAll("input")) input.checked = state.heads.has(Number(input.value));
      draw();
    });
    byId("heads").append(button);
  }
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { state.pinned = null; state.show(null); }
  });

  if (state.word !== null) state.pinned = { side: 0, number: state.word };
  describe();
  draw();
})();
