// Files: a button and a drop zone, if the server translates files.

import { at, element, send } from "./api.js";

export function offerFiles(formats, pair) {
  at("files").hidden = false;
  at("file-input").accept = formats.join(",");
  at("file-formats").textContent = formats.map((name) => name.replace(/^\./, "")).join(", ");
  const translate = (files) => { for (const file of files) translateFile(file, pair()); };
  at("file-input").addEventListener("change", () => {
    translate(at("file-input").files);
    at("file-input").value = "";
  });
  const zone = document.documentElement;
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      at("files").classList.add("over");
    });
  }
  zone.addEventListener("dragleave", (event) => { if (!event.relatedTarget) at("files").classList.remove("over"); });
  zone.addEventListener("drop", (event) => {
    at("files").classList.remove("over");
    if (!hasFiles(event)) return;
    event.preventDefault();
    translate(event.dataTransfer.files);
  });
}

async function translateFile(file, { source, target }) {
  const row = element("li", { textContent: `${file.name}: translating …` });
  at("file-list").prepend(row);
  const form = new FormData();
  for (const [name, value] of Object.entries({ source, target })) form.append(name, value);
  form.append("file", file, file.name);
  try {
    const { translatedFileUrl } = await send("translate_file", form);
    const link = element("a", { textContent: `Download the translation of ${file.name}` });
    const url = new URL(translatedFileUrl, document.baseURI);
    // Behind a proxy, the server may not know its own address: only the path counts.
    link.href = url.pathname + url.search;
    link.download = "";
    row.replaceChildren(link);
  } catch (error) {
    row.textContent = `${file.name}: ${error.message}`;
  }
}
