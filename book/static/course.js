// Links and buttons of the page's head, and printing with every folded answer open.
{
  const link = document.querySelector("a.lang-switch");
  link.addEventListener("click", () => {
    // The sections of both editions have the same anchors.
    link.search = location.search;
    link.hash = location.hash;
    try { localStorage.setItem("course-lang", link.dataset.lang); } catch { /* storage is blocked */ }
  });
  document.querySelector("[data-print]")?.addEventListener("click", () => print());

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}
