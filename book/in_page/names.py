"""What a code cell imports, needs and gives, so that a page runs a cell after those that it stands on, and no others."""

import ast
import builtins
import symtable
import sys
from functools import cache
from typing import NamedTuple

from book import ROOT

PACKAGES = frozenset({"companion", "matplotlib", "mpmath", "numpy", "sympy"})  # that a page may ship
# The runner of the page provides it, as IPython does.
_GIVEN = {*dir(builtins), "display"}


class Cell(NamedTuple):
    imports: dict  # name -> the statement that imports it
    modules: frozenset  # all modules named in import statements, also inside functions
    gives: frozenset  # names that it binds, or whose objects it changes
    needs: frozenset  # names that it reads and does not bind before, apart from imports


def read_cell(source):
    """Return the `Cell` of a piece of code."""
    imports, gives, needs, bound = {}, set(), set(), set()
    tree = _OwnScopes().visit(ast.parse(source))
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            text = ast.unparse(statement)
            imports |= {alias.asname or alias.name.split(".")[0]: text for alias in statement.names}
            continue
        binds, reads = _names(ast.unparse(statement))
        changes = _changed(statement)
        needs |= (reads | changes) - bound - (binds if _binds_first(statement) else set())
        bound |= binds
        gives |= binds | changes
    return Cell(imports, frozenset(_modules(tree)), frozenset(gives), frozenset(needs - _GIVEN))


def runnable(sources, shipped):
    """Say for each cell of a page, in order, whether it can run with the packages `shipped` and the cells above it."""
    have, imports, flags = set(), {}, []
    for cell in map(read_cell, sources):
        imports |= cell.imports
        fits = all(packages(module) <= shipped for module in cell.modules) and all(
            name in have or (name in imports and _usable(imports[name], shipped)) for name in cell.needs
        )
        flags.append(fits)
        # A name that a cell without a button binds anew is no longer what a cell above gave.
        have = have | cell.gives if fits else have - cell.gives
    return flags


def packages_of(statement):
    """Return the packages that an import statement loads."""
    return set().union(*map(packages, _modules(ast.parse(statement))))


@cache
def packages(module, *, within=False):
    """Return the packages outside the standard library that importing a module loads; `within`: or calling it."""
    root = module.partition(".")[0]
    if root != "companion":
        return frozenset({root} - sys.stdlib_module_names)
    path = ROOT / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not path.exists():  # a name, not a module: from companion.rope import apply_rope
        return packages(module.rpartition(".")[0], within=within)
    body = ast.parse(path.read_text("utf8")).body
    nodes = body if within else [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    inner = {name for node in nodes for name in _modules(node)} - {module}
    return frozenset({"companion"}.union(*(packages(name, within=within) for name in inner)))


def _usable(statement, shipped):
    """Say whether what a statement imports can be called: figures import, but show HTML, which no result may be."""
    return all(packages(module, within=True) <= shipped for module in _modules(ast.parse(statement)))


def _modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            # `from companion import plots` imports a module too.
            yield from (
                f"{node.module}.{alias.name}" for alias in node.names if node.module.startswith("companion")
            )


class _OwnScopes(ast.NodeTransformer):
    """Put each comprehension into a function: from Python 3.12 on its variables are listed with those around it."""

    def visit_ListComp(self, node):
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Call(ast.Lambda(nothing, node), [], [])

    visit_SetComp = visit_DictComp = visit_ListComp  # noqa: N815 - so ast calls them


def _names(source):
    """The names that a statement binds at the top, and those that it reads there or in a scope inside."""
    binds, reads = set(), set()

    def visit(table, top):
        for symbol in table.get_symbols():
            if top and (symbol.is_assigned() or symbol.is_namespace()):
                binds.add(symbol.get_name())
            if symbol.is_referenced() and (top or symbol.is_global()):
                reads.add(symbol.get_name())
        for child in table.get_children():
            visit(child, False)

    visit(symtable.symtable(source, "<cell>", "exec"), True)
    return binds, reads


def _binds_first(statement):
    """Loops, blocks and definitions use the names that they bind themselves."""
    return isinstance(
        statement, ast.For | ast.With | ast.FunctionDef | ast.ClassDef | ast.If | ast.Try | ast.While
    )


def _changed(statement):
    """The names whose objects a statement changes: x += 1, x[0] = 1, x.a = 1, and x.method() on a line of its own."""
    changed = set()
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return changed
    for node in ast.walk(statement):
        targets = (
            [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else getattr(node, "targets", [])
        )
        changed |= {_base(target) for target in targets if not isinstance(target, ast.Name)}
        if isinstance(node, ast.AugAssign):
            changed.add(_base(node.target))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            changed |= {_base(function)} if isinstance(function, ast.Attribute) else set()
    return changed - {None}


def _base(target):
    while isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None
