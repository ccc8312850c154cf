// Full-text search by Pagefind where the site is served; a filter over the titles where it is opened from a file.
(function () {
  const box = document.getElementById("course-search");
  const input = box.querySelector("input[type=search]");
  const status = document.getElementById("search-status");
  const list = document.getElementById("search-results");
  const query = (new URLSearchParams(location.search).get("q") || "").trim();
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
    show(
      links
        .map((link) => ({ title: link.textContent.trim(), url: link.href }))
        .filter(({ title }) => words.every((word) => title.toLowerCase().includes(word))),
      box.dataset.offline,
    );
  }

  const squeezed = (string) => string.toLowerCase().replace(/[\s\u200b]+/g, "");
  const plain = query.replace(/["“”„«»「」]/g, "");
  const words = plain.toLowerCase().split(/\s+/).filter(Boolean);
  const opening = (word) => word.slice(0, Math.max(2, Math.ceil(word.length * 0.6)));

  // Pagefind shortens a word that it does not know until it finds something; such finds only puzzle the reader.
  function meant(content) {
    const text = content.toLowerCase();
    return squeezed(text).includes(squeezed(plain)) || words.every((word) => text.includes(opening(word)));
  }

  // It also finds Chinese words that share one character with the query: 推导 for 外推.
  function belongs(mark) {
    const found = squeezed(mark).replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
    return [squeezed(plain), ...words].some(
      (word) => found.includes(word) || (found.length > 1 && word.includes(found)) || found.startsWith(opening(word)),
    );
  }

  // Of a page, the sections that show the whole query, else those in which what was meant is marked, else the page.
  function telling(page) {
    const mended = ({ excerpt }) => excerpt
      .replace(/<\/mark>\u200b?<mark>/g, "")
      .replace(/<mark>(.*?)<\/mark>/g, (marked, text) => (belongs(text) ? marked : text));
    const sections = page.sub_results
      .map((section) => ({ ...section, excerpt: mended(section) }))
      .filter(({ excerpt }) => excerpt.includes("<mark>"));
    const whole = sections.filter(({ excerpt }) => squeezed(excerpt.replace(/<[^>]*>/g, "")).includes(squeezed(plain)));
    if (whole.length) return whole.map((section) => ({ ...section, whole: 1 }));
    return sections.length ? sections : [read(page) || { ...page, excerpt: mended(page) }];
  }

  // The query in the text of a page, letter by letter: Pagefind cuts Chinese text and queries into words, not always alike.
  const letters = [...squeezed(plain)].map((letter) => letter.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&"));
  const phrase = new RegExp(letters.join("[\\s\\u200b]*"), "giu");
  function read(page) {
    const found = [...page.content.matchAll(phrase)];
    if (!found.length) return null;
    const [first] = found, end = first.index + first[0].length;
    const before = page.content.slice(Math.max(0, first.index - 40), first.index);
    const excerpt = [before, first[0], page.content.slice(end, end + 60)];
    return { title: page.meta.title, url: page.url, excerpt, times: found.length, whole: 1 };
  }

  async function byReading(pagefind) {
    const all = await pagefind.search(null);
    const pages = await Promise.all(all.results.map((result) => result.data()));
    return pages.map(read).filter(Boolean).sort((one, other) => other.times - one.times);
  }

  async function byText() {
    const pagefind = await import(new URL(box.dataset.pagefind, location.href));
    const found = await pagefind.search(query.replace(/[“”„]/g, '"'));
    const pages = (await Promise.all(found.results.map((result) => result.data()))).filter((page) => meant(page.content));
    const listed = pages.flatMap((page) =>
      telling(page).map((section) => ({
        title: section.title && section.title !== page.meta.title ? `${page.meta.title} › ${section.title}` : page.meta.title,
        url: section.url,
        excerpt: section.excerpt,
        whole: section.whole || 0,
      })));
    show(listed.length ? listed.sort((one, other) => other.whole - one.whole) : await byReading(pagefind));
  }

  if (!plain) return;
  if (location.protocol === "file:") byTitle();
  else byText().catch(byTitle);
})();
