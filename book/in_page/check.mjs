// node check.mjs: run the cells of a page as the page would, in Pyodide under node, and print what they give.
// Standard input: {"folder": the files of the page, with pyodide.asm.wasm, "cells": [{source, imports, packages}]}.
import { readFileSync } from "node:fs";

const { folder, cells } = JSON.parse(readFileSync(0, "utf8"));
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const python = await loadPyodide({
  indexURL: `${folder}/`, lockFileURL: `${folder}/pyodide-lock.json`, packageBaseUrl: `${folder}/`,
});
let results;
const emit = (kind, data) => {
  if (results.at(-1)?.kind === kind && kind.startsWith("std")) results.at(-1).data += data;
  else results.push({ kind, data });
};
for (const [kind, set] of [["stdout", python.setStdout], ["stderr", python.setStderr]]) {
  const decoder = new TextDecoder();
  set.call(python, { write: (bytes) => (emit(kind, decoder.decode(bytes, { stream: true })), bytes.length) });
}
python.registerJsModule("_page", { emit });
python.runPython(readFileSync(`${folder}/cell.py`, "utf8"));
const all = [];
for (const [number, { source, imports, packages }] of cells.entries()) {
  results = [];
  await python.loadPackage(packages, { messageCallback() {}, checkIntegrity: true });
  await python.globals.get("run_cell")(source, number + 1, imports);
  all.push(results);
}
process.stdout.write(JSON.stringify(all));
