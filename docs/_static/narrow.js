// Where words of code may break, and tables on narrow screens.
const NUMBER = /^[+−]?\d[\d.,]*( \([\d.,–]+\)| to [+−]?[\d.,]+)?$/; // also with an interval

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("code.literal span.pre").forEach(breakable);
  for (const table of document.querySelectorAll("table.docutils")) {
    table.querySelectorAll("tbody td").forEach((cell) => cell.classList.toggle("number", NUMBER.test(cell.textContent.trim())));
    const heads = [...table.querySelectorAll("thead th")];
    if (heads.length > 2 && table.querySelector("tbody code")) stack(table, heads);
  }
});

// Short words of code stay whole. Long ones, such as paths, may break after a separator.
function breakable(word) {
  const text = word.textContent;
  if (text.length < 25) return word.classList.add("short");
  word.replaceChildren(...text.split(/(?<=[/._])/).flatMap((part) => [part, document.createElement("wbr")]));
}

// On a phone, each row of a table with code is a card, in which cells have the heads of their columns.
// The first cell is the title of the card. It has a head only if that is an option, or if the cell is a number.
function stack(table, heads) {
  table.classList.add("stacked");
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, column) => {
      const text = cell.textContent.trim();
      const name = heads[column].textContent.trim();
      if (name && (column || heads[0].querySelector("code") || /^\d/.test(text))) cell.dataset.head = name;
      cell.classList.toggle("blank", !text);
    });
  }
}
