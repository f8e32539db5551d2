"""Small faults for a Python module, one at a time: what `tools/mutate.py` puts under the tests."""

import ast
import copy
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

Change = Callable[[], object]


class _Site(NamedTuple):
    """A node that can be changed in place, and where it is.

    `scope` is the innermost function or class, `statement` the lines of the innermost statement;
    `in_function` says that it runs when a function does.
    """

    node: ast.AST
    scope: str
    statement: range
    in_function: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change, found again by the number of its site and of its variant.

    Not `is_made`, it stands for the module without the change.
    """

    file: Path
    source: str
    site: int
    variant: int
    first_line: int
    last_line: int
    scope: str
    statement: range
    in_function: bool
    before: str
    after: str
    is_made: bool = True

    @property
    def change(self) -> str:
        """The code before and after."""
        return f"{self.before} -> {self.after}"

    @property
    def place(self) -> tuple[str, int]:
        """File and line."""
        return self.file.as_posix(), self.first_line

    @property
    def key(self) -> str:
        """File, function and change, without the line, which moves with every edit above it."""
        return f"{' '.join((self.file.name, self.scope)).strip()}: {self.change}"

    def tree(self) -> ast.Module:
        """The changed module."""
        tree = ast.parse(self.source)
        if not self.is_made:
            return tree
        site = next(found for index, found in enumerate(_sites(tree)) if index == self.site)
        list(_changes(site.node))[self.variant]()
        return ast.fix_missing_locations(tree)


def mutants(file: Path) -> Iterator[Mutant]:
    """All changes of a file."""
    source = file.read_text(encoding="utf-8")
    for number, site in enumerate(_sites(ast.parse(source))):
        before = _shown(site.node)
        for variant in range(len(list(_changes(site.node)))):
            changed = copy.deepcopy(site.node)
            list(_changes(changed))[variant]()
            line = _first_line(site.node)
            yield Mutant(
                file=file,
                source=source,
                site=number,
                variant=variant,
                first_line=line,
                last_line=_last_line(site.node, line),
                scope=site.scope,
                statement=site.statement,
                in_function=site.in_function,
                before=before,
                after=_shown(ast.fix_missing_locations(changed)),
            )


def lines_with_code(code: types.CodeType) -> set[int]:
    """The lines that can be executed; those of a constant that is made in advance are not."""
    inner = (found for found in code.co_consts if isinstance(found, types.CodeType))
    own = {line for _, _, line in code.co_lines() if line is not None}
    return own.union(*map(lines_with_code, inner))


def _first_line(node: ast.AST) -> int:
    line: int = node.target.lineno if isinstance(node, ast.comprehension) else vars(node)["lineno"]
    return line


def _last_line(node: ast.AST, line: int) -> int:
    if isinstance(node, ast.If | ast.While):
        return node.test.end_lineno or line
    return getattr(node, "end_lineno", None) or line


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return " ".join(ast.unparse(node).split())


def _sites(tree: ast.Module) -> Iterator[_Site]:
    """Every node that may be changed, always in the same order."""
    yield from _below(_Site(tree, "", range(0), in_function=False))


def _below(site: _Site) -> Iterator[_Site]:
    for child, inside in _children(site.node, in_function=site.in_function):
        lines, scope = site.statement, site.scope
        if isinstance(child, ast.stmt):
            lines = range(child.lineno, (child.end_lineno or child.lineno) + 1)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope = child.name
        found = _Site(child, scope, lines, inside)
        yield found
        yield from _below(found)


def _children(node: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes below without annotations, decorators, docstrings and the messages of exceptions."""
    inside = in_function or isinstance(node, _FUNCTION_NODES)
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "args", "bases", "keywords"}:
            if name == "args" and isinstance(node, ast.Call):
                yield from ((argument, inside) for argument in value)
            elif name == "keywords" and isinstance(node, ast.Call):
                yield from ((keyword, inside) for keyword in value)
            elif isinstance(node, _FUNCTION_NODES) and isinstance(value, ast.arguments):
                defaults = [*value.defaults, *value.kw_defaults]
                yield from ((default, in_function) for default in defaults if default)
            continue
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST) and not isinstance(item, ast.Raise) and not _is_text(item):
                yield item, inside


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _changes(node: ast.AST) -> Iterator[Change]:
    yield from _changed_operators(node)
    yield from _changed_conditions(node)
    yield from _changed_values(node)


def _changed_operators(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=ops):
            for index, operator in enumerate(ops):
                yield _setter(ops, index, _COMPARISONS[type(operator)]())
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in _ARITHMETIC:
            yield _attribute(node, "op", _ARITHMETIC[type(operator)]())
        case ast.BoolOp(op=operator):
            yield _attribute(node, "op", ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield _attribute(node, "operand", _negated(node.operand))
        case ast.UnaryOp(op=ast.USub()):
            yield _attribute(node, "op", ast.UAdd())


def _changed_conditions(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If() | ast.While() | ast.IfExp() if _is_plain(node.test):
            yield _attribute(node, "test", _negated(node.test))
        case ast.comprehension(ifs=conditions):
            for index, condition in enumerate(conditions):
                if _is_plain(condition):
                    yield _setter(conditions, index, _negated(condition))
        case ast.Break() | ast.Continue():
            other = ast.Continue if isinstance(node, ast.Break) else ast.Break
            yield _attribute(node, "__class__", other)


def _changed_values(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Constant(value=bool(value)):
            yield _attribute(node, "value", not value)
        case ast.Constant(value=int(value) | float(value)):
            yield _attribute(node, "value", value + 1)
        case ast.Constant(value=str(value)):
            yield _attribute(node, "value", f"XX{value}XX")
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS:
            yield _attribute(node, "func", ast.Name(_FUNCTIONS[name], ast.Load()))
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield _attribute(node, "value", ast.Constant(None))


def _is_plain(test: ast.expr) -> bool:
    """Whether no operator in it is changed already."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp)


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _attribute(node: ast.AST, name: str, value: object) -> Change:
    return lambda: setattr(node, name, value)


def _setter(items: "list[ast.cmpop] | list[ast.expr]", index: int, value: ast.AST) -> Change:
    def change() -> None:
        items[index] = value  # type: ignore[call-overload]  # of the kind it replaces

    return change
