// Python in a worker: the page stays responsive, and Stop ends the worker. Every file comes from this folder.
const here = new URL("./", import.meta.url).href;
const plainFetch = self.fetch;
let got = 0, alive = false;

const fail = (error) => { postMessage({ failed: String(error) }); throw error; };  // loadPyodide may hang on a missing file

self.fetch = async (url, options) => {
  const wasm = String(url).endsWith(".wasm");
  const answer = await plainFetch(wasm ? url + ".bin" : url, options).catch(fail);
  if (!answer.ok) fail(new Error(`${answer.status} ${url}`));
  const reader = answer.body.getReader();
  let body = new ReadableStream({
    async pull(sink) {
      const { done, value } = await reader.read().catch(fail);
      if (done) return sink.close();
      got += value.length;
      postMessage({ got });
      sink.enqueue(value);
    },
  });
  if (wasm) body = body.pipeThrough(new DecompressionStream("gzip"));
  const type = wasm ? "application/wasm" : answer.headers.get("Content-Type") || "";
  return new Response(body, { headers: { "Content-Type": type } });
};

// At most ten messages a second, 100,000 characters and 100 other results a cell: no loop may choke the page.
const MOST = 1e5, LONGEST = 1e4;
let text = "", kindOfText, sent = 0, left = MOST;
const flush = () => {
  if (text) postMessage({ result: { kind: kindOfText, data: text } });
  text = "";
  sent = performance.now();
};
const write = (kind, data) => {
  if (left <= 0) return;
  if (kind !== kindOfText) { flush(); kindOfText = kind; }
  text += data.slice(0, left);
  left -= data.length;
  if (left <= 0) text += "\n…\n";
  if (left <= 0 || performance.now() - sent > 100) flush();
};
const emit = (kind, data) => {
  if (kind.startsWith("std")) return write(kind, data);
  flush();
  if (kind === "error") {  // comes once, and its end says what is wrong
    if (data.length > LONGEST) data = data.slice(0, LONGEST / 2) + "\n…\n" + data.slice(-LONGEST / 2);
  } else {
    if (left <= 0) return;
    if (kind === "text") data = data.slice(0, left);
    left -= Math.max(MOST / 100, kind === "png" ? 0 : data.length);
  }
  postMessage({ result: { kind, data } });
  if (left <= 0 && kind !== "error") postMessage({ result: { kind: "stdout", data: "…\n" } });
};

const ready = (async () => {
  const { loadPyodide } = await import("./pyodide.mjs");
  const python = await loadPyodide({ indexURL: here, lockFileURL: here + "pyodide-lock.json", packageBaseUrl: here });
  for (const [kind, set] of [["stdout", python.setStdout], ["stderr", python.setStderr]]) {
    const decoder = new TextDecoder();
    set.call(python, { write: (bytes) => (emit(kind, decoder.decode(bytes, { stream: true })), bytes.length) });
  }
  python.setStdin({ error: true });
  python.registerJsModule("_page", { emit });
  python.runPython(await (await plainFetch(here + "cell.py")).text());
  alive = true;
  return python;
})();
ready.catch(fail);

// os._exit, or a fault in Pyodide itself, leaves a Python that answers nothing any more.
const broken = async () => {
  try { (await ready).runPython("0"); } catch { return true; }
};
const mourn = async (error) => {
  if (!alive || !await broken()) return false;
  emit("error", String(error?.message || error));
  postMessage({ died: true });
  return true;
};
for (const kind of ["error", "unhandledrejection"])
  addEventListener(kind, (event) => {
    if (!alive) return;
    event.preventDefault();
    mourn(event.reason || event.error);
  });

onmessage = async ({ data: { number, source, imports, packages } }) => {
  left = MOST;
  try {
    const python = await ready;
    const quiet = { messageCallback() {}, checkIntegrity: true };
    await python.loadPackage(packages, quiet);
    await python.loadPackagesFromImports(source, quiet);
    postMessage({ running: number });
    const ok = await python.globals.get("run_cell")(source, number, imports);
    flush();
    postMessage({ done: number, ok });
  } catch (error) {
    if (!alive || await mourn(error)) return;  // the page knows; the next click starts a new worker
    emit("error", String(error.message || error));
    postMessage({ done: number, ok: false });
  }
};
