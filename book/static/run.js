// Run and edit the cells of a page in the reader's own browser. Nothing is loaded before the first click on Run.
(() => {
  const base = new URL(document.currentScript.dataset.python, document.baseURI);
  if (!/^https?:$/.test(location.protocol) || !window.Worker || !window.DecompressionStream) return;
  const { cells: known, sizes } = JSON.parse(document.getElementById("run-in-page").textContent);
  const zh = document.documentElement.lang.startsWith("zh");
  const words = zh ? {
    run: "运行", stop: "停止", reset: "还原", result: (n) => `第 ${n} 格的运行结果`,
    code: (n) => `可编辑的 Python 代码，第 ${n} 格`,
    hint: (mb) => `第一次运行要下载约 ${mb} MB，以后从缓存读取。按 Ctrl+Enter 也可运行。`,
    loading: (got, mb) => `正在载入 Python：${got} / ${mb} MB`,
    running: "正在运行…", done: (s) => `完成，用时 ${s} 秒`, error: "出错了", above: "上面的单元格出错了，先改好它。",
    stopped: "已停止。变量都清空了，下次运行从头开始。",
    failed: "载入失败。请检查网络，再点一次“运行”。",
    died: "Python 坏了，变量都清空了。再点一次“运行”，从头开始。",
    kept: "这是你改过的代码；点“还原”取回原来的。",
  } : {
    run: "Run", stop: "Stop", reset: "Reset", result: (n) => `Result of cell ${n}`,
    code: (n) => `Editable Python code, cell ${n}`,
    hint: (mb) => `The first run downloads about ${mb} MB, later ones read the cache. Ctrl+Enter runs too.`,
    loading: (got, mb) => `Loading Python: ${got} of ${mb} MB`,
    running: "Running…", done: (s) => `Done in ${s} s`, error: "Error", above: "A cell above failed; mend it first.",
    stopped: "Stopped. The variables are gone; the next run starts afresh.",
    failed: "Loading failed. Check the network and click Run again.",
    died: "Python broke down and its variables are gone. Click Run to start afresh.",
    kept: "This is the code as you changed it; Reset brings back the original.",
  };

  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const say = (cell, text) => { if (cell.status.textContent !== text) cell.status.textContent = text; };
  const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

  // --- Colours while typing, with the class names of the page's own style sheet.
  const TOKEN = new RegExp([
    /(#.*)/,
    /([rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /\b(\d[\d_.]*(?:e[+-]?\d+)?j?)\b/,
    /\b(import|from)\b/,
    /\b(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|global|if|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield)\b/,
    /\b(True|False|None)\b/,
    /([-+*/%=<>!&|^~@]+)/,
  ].map((part) => part.source).join("|"), "g");
  const CLASSES = [, "c1", "s2", "mi", "kn", "k", "kc", "o"];
  const paint = (pre, text) => {
    pre.textContent = "";
    let from = 0;
    for (const match of text.matchAll(TOKEN)) {
      const kind = CLASSES[match.findIndex((group, i) => i && group !== undefined)];
      pre.append(text.slice(from, match.index), element("span", { className: kind }, match[0]));
      from = match.index + match[0].length;
    }
    pre.append(text.slice(from) + "\n");
  };

  // --- What a cell stands on: the names in it, but not those in comments, strings and after a dot.
  const identifiers = (source) => {
    const bare = source.replace(TOKEN, (text, comment, string) =>
      comment ? "" : string ? (/^[^"']*f/i.test(string) ? ` ${string} ` : " ") : text);
    return new Set(bare.match(/(?<![\w.])[A-Za-z_]\w*/g) || []);
  };
  const importsAbove = (cell) => {
    const found = new Map();
    for (const other of known.slice(0, cell.index + 1))
      for (const [name, entry] of Object.entries(other.imports)) found.set(name, entry);
    return [...identifiers(cell.area.value)].filter((name) => found.has(name)).map((name) => found.get(name));
  };
  // The cells above that gave a name, from the last one that bound it anew to those that changed it since.
  const providers = (cell) => {
    const found = new Set();
    for (const name of identifiers(cell.area.value))
      for (const other of cells) if (other.index < cell.index && known[other.index].gives.includes(name)) found.add(other);
    return [...found];
  };
  const plan = (cell) => {
    const needed = new Set([cell]), todo = [cell];
    while (todo.length) for (const other of providers(todo.pop()))
      if (!needed.has(other)) { needed.add(other); todo.push(other); }
    const inOrder = cells.filter((other) => needed.has(other));
    // Whatever ran before in this order and has not been edited need not run again.
    let fresh = 0;
    while (fresh < inOrder.length - 1 && upToDate(inOrder, fresh)) fresh += 1;
    return inOrder.slice(fresh);
  };
  // A cell further down may have bound a name of this one anew when it ran: then this one is not up to date.
  const upToDate = (inOrder, i) => {
    const cell = inOrder[i];
    if (cell.ran !== cell.area.value) return false;
    return known[cell.index].gives.every((name) => {
      const last = owners.get(name);
      return !last || inOrder.slice(i).includes(last);
    });
  };

  // --- One Python for the page.
  let worker, current, asked, size, clicked;  // `asked` is the cell whose Run was clicked, `current` the one that runs for it
  const cells = [], owners = new Map();
  const start = () => {
    const mine = worker = new Worker(new URL("worker.js", base), { type: "module" });
    worker.onmessage = ({ data }) => {
      if (mine !== worker) return;  // what a stopped worker had sent may still arrive
      if (data.failed) lose(words.failed);
      else if (data.died) lose(words.died);
      else if (!current) return;
      else if (data.got !== undefined) { if (!current.running) tell(words.loading(megabytes(data.got), megabytes(Math.max(size, data.got)))); }
      else if (data.running !== undefined) { current.running = true; tell(words.running); }
      else if (data.result) show(current, data.result);
      else current.finish(data.ok);
    };
    worker.onerror = (event) => { event.preventDefault(); if (mine === worker) lose(words.failed); };
  };
  const lose = (why) => {
    worker?.terminate();
    worker = null;
    owners.clear();
    for (const cell of cells) cell.ran = null;
    if (current) { tell(why); current.finish(null); }
  };
  // The cell that runs may be far above the one that the reader looks at.
  const tell = (text) => { say(current, text); say(asked, text); };

  const katex = () => window.katex || new Promise((resolve, reject) => {
    document.head.append(element("script", { src: new URL("katex.min.js", base), onload: resolve, onerror: reject }));
  });
  const show = async (cell, { kind, data }) => {
    if (kind === "latex") {
      const box = element("div", { className: "math", tabIndex: 0 });
      cell.out.append(box);
      const formula = data.replace(/^\$+(\\displaystyle)?|\$+$/g, "");
      try {
        await katex();
        window.katex.render(formula, box, { displayMode: true, throwOnError: false, trust: false, output: "htmlAndMathml" });
      } catch { box.textContent = formula; }
    } else if (kind === "png") {
      cell.out.append(element("img", { src: "data:image/png;base64," + data, alt: cell.alt || words.result(cell.number) }));
    } else if (kind.startsWith("std") && cell.out.lastElementChild?.dataset.kind === kind) {
      cell.out.lastElementChild.textContent += data;
    } else {
      const box = element("pre", { className: `output ${kind}`, textContent: data, tabIndex: 0 });
      box.dataset.kind = kind;
      cell.out.append(box);
    }
  };

  const runOne = async (cell) => {
    current = cell;
    cell.running = false;
    cell.out.textContent = "";
    cell.out.hidden = false;
    if (cell.built) cell.built.hidden = true;
    tell(worker ? words.running : words.loading("0.0", megabytes(size)));
    if (!worker) start();
    const began = performance.now(), source = cell.area.value, imports = importsAbove(cell);
    const ok = await new Promise((finish) => {
      cell.finish = finish;
      worker.postMessage({
        number: cell.number, source,
        imports: [...new Set(imports.map(([statement]) => statement))].join("\n"),
        packages: packagesOf(cell),
      });
    });
    if (ok !== null) {
      cell.ran = ok ? source : null;
      for (const name of known[cell.index].gives) owners.set(name, cell);
      say(cell, ok ? words.done(((performance.now() - began) / 1e3).toFixed(1)) : words.error);
    }
    return ok;
  };
  const run = async (cell) => {
    const cellsToRun = plan(cell);
    asked = cell;
    clicked = performance.now();
    size = download(cellsToRun);
    for (const other of cells) other.button.textContent = "■ " + words.stop;
    for (const next of cellsToRun) {
      if (await runOne(next)) continue;
      if (next === cell || !worker) break;
      say(cell, words.above);
      if (!next.out.isConnected) {  // a cell without controls has no place of its own for what went wrong
        cell.out.replaceChildren(...next.out.childNodes);
        cell.out.hidden = false;
      }
      break;
    }
    asked = current = null;
    for (const other of cells) other.button.textContent = "▶ " + words.run;
  };
  // One button for both: of a double click only the first counts.
  const click = (cell, event) => {
    if (event.detail > 1) return;
    if (!asked) run(cell);
    else if (performance.now() - clicked > 400) lose(words.stopped);
  };

  // --- The controls of one cell.
  const packagesOf = (cell) => {
    const found = new Set(importsAbove(cell).flatMap(([, packages]) => packages));
    if (cell.area.value !== cell.text && /\bcompanion\b/.test(cell.area.value)) for (const name in sizes) found.add(name);
    return [...found].filter((name) => name && name in sizes);
  };
  const download = (all) => [...new Set(["", ...all.flatMap(packagesOf)])].reduce((sum, name) => sum + sizes[name], 0);
  const dress = (node, index) => {
    const pre = node.querySelector(".cell_input pre"), painted = pre.innerHTML;
    const text = pre.textContent.replace(/\n$/, ""), number = index + 1;
    const area = element("textarea", { value: text, spellcheck: false, autocomplete: "off", wrap: "off" });
    for (const [name, value] of [["autocapitalize", "off"], ["autocorrect", "off"], ["aria-label", words.code(number)]])
      area.setAttribute(name, value);
    const built = node.querySelector(".cell_output");
    const cell = { node, index, number, text, area, built, alt: built?.querySelector("img")?.alt };
    pre.setAttribute("aria-hidden", "true");
    pre.removeAttribute("tabindex");
    const sheet = element("div");
    pre.replaceWith(element("div", { className: "run-edit" }, sheet));
    sheet.append(pre, area);
    const fit = () => { area.rows = area.value.split("\n").length; };
    fit();
    area.oninput = () => { paint(pre, area.value); fit(); keep(index, text, area.value); };
    area.onkeydown = (event) => {
      // While composing, Enter belongs to the input method; Safari says so by its old code only.
      if (event.isComposing || event.keyCode === 229 || event.key !== "Enter") return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey || event.shiftKey) return void (asked || event.repeat || run(cell));
      const line = area.value.slice(0, area.selectionStart).split("\n").pop();
      const deeper = /:\s*(#.*)?$/.test(line) ? "    " : "";
      document.execCommand("insertText", false, "\n" + line.match(/^ */)[0] + deeper);  // keeps undo
    };
    cell.button = element("button", { type: "button", className: "run-go", textContent: "▶ " + words.run, onclick: (event) => click(cell, event) });
    cell.button.onkeydown = (event) => { if (event.repeat) event.preventDefault(); };
    const reset = element("button", { type: "button", textContent: words.reset, onclick: () => {
      area.value = text;
      pre.innerHTML = painted;
      fit();
      keep(index, text, text);
      const stopped = current === cell;
      if (stopped) lose(words.stopped);
      cell.out.hidden = true;
      if (built) built.hidden = false;
      if (!stopped) say(cell, "");
    } });
    cells.push(cell);
    cell.status = element("span", { className: "run-status" });
    cell.status.setAttribute("role", "status");
    cell.out = element("div", { className: "cell_output run-out", hidden: true });
    cell.out.setAttribute("role", "region");
    cell.out.setAttribute("aria-label", words.result(number));
    if (!document.querySelector(".run-bar")) say(cell, words.hint(megabytes(download(plan(cell)))));
    node.querySelector(".cell_input").after(element("div", { className: "run-bar" }, cell.button, reset, cell.status), cell.out);
    const mine = kept(index, text);
    if (mine !== undefined) {
      area.value = mine;
      paint(pre, mine);
      fit();
      say(cell, words.kept);
    }
  };
  // What the reader changed outlives a reload, and a look at another page, in this tab; it runs on a click only.
  const place = (index) => `run ${location.pathname} ${index}`;
  const keep = (index, text, mine) => {
    try {
      if (mine === text) sessionStorage.removeItem(place(index));
      else sessionStorage.setItem(place(index), JSON.stringify([text, mine]));
    } catch { /* storage is blocked */ }
  };
  const kept = (index, text) => {
    try {
      const [before, mine] = JSON.parse(sessionStorage.getItem(place(index)));
      if (before === text) return mine;  // the course has not changed this cell since
    } catch { /* nothing there, or storage is blocked */ }
  };
  // A figure whose code is folded away has no controls, but others may need what it gives.
  const silent = (node, index) => {
    const text = node.querySelector(".cell_input pre").textContent.replace(/\n$/, "");
    const [status, out, button] = ["span", "div", "button"].map((tag) => element(tag));
    cells.push({ index, number: index + 1, text, area: { value: text }, status, out, button });
  };
  [...document.querySelectorAll("div.cell")].filter((node) => node.querySelector(".cell_input")).forEach((node, index) => {
    if (known[index].runs) (node.classList.contains("tag_run-in-page") ? dress : silent)(node, index);
  });
})();
