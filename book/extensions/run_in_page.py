"""Cells with the tag run-in-page get buttons, if this build ships what they import; the script is on those pages only."""

import json

from docutils import nodes

from book.in_page.names import packages, packages_of, read_cell, runnable

_CLASS = "tag_run-in-page"


def choose(app, doctree):
    """Take the class from the cells that cannot run with what is shipped, and keep what the page's script must know."""
    runtime, name = app.config.run_in_page, app.env.docname
    cells = [cell for cell in doctree.findall(nodes.container) if "cell" in cell.get("classes", ())]
    cells = [cell for cell in cells if any("cell_input" in part.get("classes", ()) for part in cell.children)]
    sources = [next(cell.findall(nodes.literal_block)).astext() for cell in cells]
    shipped = frozenset(runtime["packages"] if runtime else ())
    known = []
    for cell, source, fits in zip(cells, sources, runnable(sources, shipped), strict=True):
        if _CLASS in cell["classes"] and not fits:
            cell["classes"].remove(_CLASS)
        names = read_cell(source)
        imports = {bound: [text, _packages(text, name, runtime)] for bound, text in names.imports.items()}
        known.append({"gives": sorted(names.gives), "imports": imports, "runs": fits})
    buttons = any(_CLASS in cell["classes"] for cell in cells)
    app.env.metadata[name]["run_in_page"] = json.dumps(known) if buttons else ""


def _packages(statement, page, runtime):
    """The packages of an import, with those that they stand on; `check` loads the checks of its lesson only when it is called."""
    found = packages_of(statement)
    if "companion.exercises" in statement:
        found = found | packages(f"companion.exercises.lesson_{page[:2]}")
    needs = runtime["needs"] if runtime else {}
    return sorted(found.union(*(needs.get(name, ()) for name in found)))


def add_script(app, pagename, templatename, context, doctree):
    known = app.env.metadata.get(pagename, {}).get("run_in_page")
    if not known:
        return
    runtime = app.config.run_in_page
    data = {"cells": json.loads(known), "sizes": runtime["sizes"]}
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    context["body"] += f'<script type="application/json" id="run-in-page">{text}</script>'
    folder = f"{context['site_root']}python/{runtime['folder']}/"
    app.add_js_file("run.js", loading_method="defer", **{"data-python": folder})
    app.add_css_file("run.css")


def setup(app):
    app.add_config_value("run_in_page", {}, "env")  # of book.in_page.runtime.assemble
    app.connect("doctree-read", choose)
    app.connect("html-page-context", add_script, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
