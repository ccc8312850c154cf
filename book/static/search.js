// Full-text search by Pagefind where the site is served; a filter over the titles where it is opened from a file.
(function () {
  const box = document.getElementById("course-search");
  const input = box.querySelector("input[type=search]");
  const status = document.getElementById("search-status");
  const list = document.getElementById("search-results");
  const query = new URLSearchParams(location.search).get("q") || "";
  input.value = query;
  input.focus();

  function show(entries, note) {
    status.textContent = entries.length
      ? `${entries.length} ${entries.length === 1 ? box.dataset.one : box.dataset.found}`
      : `${box.dataset.none} “${query}”`;
    if (note) status.textContent += ` (${note})`;
    list.replaceChildren(...entries.map(({ title, url, excerpt }) => {
      const item = document.createElement("li");
      const link = item.appendChild(document.createElement("a"));
      link.href = url;
      link.textContent = title;
      if (excerpt) {
        const text = item.appendChild(document.createElement("p"));
        if (Array.isArray(excerpt)) {
          text.append(...excerpt);
          const mark = document.createElement("mark");
          text.childNodes[1].replaceWith(mark);
          mark.textContent = excerpt[1];
        } else text.innerHTML = excerpt; // Pagefind escapes the page's text and adds <mark>
      }
      return item;
    }));
  }

  function byTitle() {
    const links = [...document.querySelectorAll("#search-headings a")];
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    show(
      links
        .map((link) => ({ title: link.textContent.trim(), url: link.href }))
        .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))),
      box.dataset.offline,
    );
  }

  // Pagefind shortens a word that it does not know until it finds something; such finds only puzzle the reader.
  function meant(content) {
    const text = content.toLowerCase();
    const squeezed = (string) => string.replace(/[\s\u200b]+/g, "");
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const opening = (word) => word.slice(0, Math.max(2, Math.ceil(word.length * 0.6)));
    return squeezed(text).includes(squeezed(query.toLowerCase())) || words.every((word) => text.includes(opening(word)));
  }

  // Of a page, the sections in which more than a single character was found; the page itself if there is none.
  function telling(page) {
    const long = ({ excerpt }) => /<mark>[^<]{2,}<\/mark>/.test(excerpt.replace(/<\/mark>\u200b?<mark>/g, ""));
    const sections = query.length > 1 ? page.sub_results.filter(long) : page.sub_results;
    return sections.length ? sections : [page];
  }

  // Pagefind cuts the index and the query into Chinese words, not always alike; then the pages themselves are read.
  async function byReading(pagefind) {
    const letters = [...query.replace(/\s+/g, "")].map((letter) => letter.replace(/[^\p{L}\p{N}]/u, "\\$&"));
    const phrase = new RegExp(letters.join("[\\s\\u200b]*"), "giu");
    const all = await pagefind.search(null);
    const pages = await Promise.all(all.results.map((result) => result.data()));
    const hits = pages.map((page) => [page, [...page.content.matchAll(phrase)]]).filter(([, found]) => found.length);
    return hits.sort((one, other) => other[1].length - one[1].length).map(([page, [first]]) => {
      const end = first.index + first[0].length;
      const before = page.content.slice(Math.max(0, first.index - 40), first.index);
      return { title: page.meta.title, url: page.url, excerpt: [before, first[0], page.content.slice(end, end + 60)] };
    });
  }

  async function byText() {
    const pagefind = await import(new URL(box.dataset.pagefind, location.href));
    const found = await pagefind.search(query);
    const pages = (await Promise.all(found.results.map((result) => result.data()))).filter((page) => meant(page.content));
    show(!pages.length ? await byReading(pagefind) : pages.flatMap((page) =>
      telling(page).map((section) => ({
        title: section.title && section.title !== page.meta.title ? `${page.meta.title} › ${section.title}` : page.meta.title,
        url: section.url,
        excerpt: section.excerpt,
      }))));
  }

  if (!query) return;
  if (location.protocol === "file:") byTitle();
  else byText().catch(byTitle);
})();
