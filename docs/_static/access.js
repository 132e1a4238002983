// What the theme leaves out for readers with a keyboard or a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll('.caption[role="heading"]').forEach((caption) => { caption.ariaLevel = "2"; });
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "Site");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "Page");
  // A block that is wider than the page scrolls, so it must be reachable by keyboard.
  for (const pre of document.querySelectorAll("pre")) if (pre.scrollWidth > pre.clientWidth) pre.tabIndex = 0;
});
