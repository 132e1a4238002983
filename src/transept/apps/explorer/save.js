// Save a drawing as SVG or PNG. It consists of lines, boxes, paths and texts, so a canvas can draw it without
// loading an image, which the content security policy of the pages forbids.

const PROPERTIES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "font-family", "font-size", "font-weight"];

// A copy with the computed colours and fonts as attributes.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [theirs, ours] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  theirs.forEach((node, index) => {
    const style = getComputedStyle(node);
    ours[index].removeAttribute("style");
    for (const name of PROPERTIES) ours[index].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-pressed"]) ours[index].removeAttribute(name);
  });
  const paper = document.createElementNS(copy.namespaceURI, "rect");
  const { x, y, width, height } = svg.viewBox.baseVal;
  for (const [name, value] of Object.entries({ x, y, width, height, fill: background() })) paper.setAttribute(name, value);
  copy.prepend(paper);
  return copy;
}

const background = () => getComputedStyle(document.body).backgroundColor;

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function saveSvg(svg, name) {
  const text = new XMLSerializer().serializeToString(standalone(svg));
  download(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
}

export function savePng(svg, name, scale = 2) {
  const { x, y, width, height } = svg.viewBox.baseVal;
  const canvas = Object.assign(document.createElement("canvas"), { width: scale * width, height: scale * height });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.translate(-x, -y);
  pen.fillStyle = background();
  pen.fillRect(x, y, width, height);
  for (const node of svg.querySelectorAll("line, rect, path, text")) {
    if (!node.closest('[display="none"]')) drawNode(pen, node);
  }
  canvas.toBlob((blob) => download(blob, `${name}.png`));
}

function drawNode(pen, node) {
  const style = getComputedStyle(node);
  const number = (name) => Number(node.getAttribute(name)) || 0;
  pen.save();
  pen.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
  if (node.tagName === "text") {
    const anchor = { start: "left", middle: "center", end: "right" }[style.textAnchor];
    pen.translate(number("x"), number("y"));
    if (node.hasAttribute("transform")) pen.rotate(-Math.PI / 2);
    Object.assign(pen, { font: `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`, textAlign: anchor, textBaseline: "middle", fillStyle: style.fill });
    pen.fillText(node.textContent, 0, 0);
  } else {
    const path = new Path2D(node.tagName === "path" ? node.getAttribute("d") : undefined);
    if (node.tagName === "rect") path.roundRect(number("x"), number("y"), number("width"), number("height"), number("rx"));
    if (node.tagName === "line") { path.moveTo(number("x1"), number("y1")); path.lineTo(number("x2"), number("y2")); }
    if (style.fill !== "none") Object.assign(pen, { fillStyle: style.fill, globalAlpha: style.fillOpacity * style.opacity }).fill(path);
    if (style.stroke !== "none") Object.assign(pen, { strokeStyle: style.stroke, lineWidth: parseFloat(style.strokeWidth), globalAlpha: style.strokeOpacity * style.opacity }).stroke(path);
  }
  pen.restore();
}
