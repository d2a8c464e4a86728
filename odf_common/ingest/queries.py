"""The queries of a preprocess step: what is a query, what it may read, and the one form in which a chain holds it."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from odf_common.ingest.errors import UnsupportedSourceError
from odf_common.metadata.transforms import SqlQueryStep, TransformSql

if TYPE_CHECKING:
    from sqlglot import exp

ENGINE = "spark"
INPUT = "input"
"""The table that holds what the read step gave."""

_MAX_QUERY_SIZE = 100_000  # characters
_MAX_STEPS = 100
_ALIAS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_FORBIDDEN_FUNCTIONS = frozenset({"reflect", "try_reflect", "java_method"})
"""They call any Java method."""

_TABLE_FUNCTIONS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "stack",
        "unnest",
        "variant_explode",
        "variant_explode_outer",
    }
)
"""Functions that give rows and read nothing but their arguments."""


class QueryRefusedError(UnsupportedSourceError):
    """A query of a transform is not one, or reads more than it may."""


def normalized(transform: TransformSql) -> TransformSql:
    """The form that a chain holds: `queries`, the last of which has no alias; `query` is short for a single one."""
    if transform.query is not None and transform.queries is not None:
        raise QueryRefusedError("a transform has `query` or `queries`, not both: keep one")
    if transform.query is not None:
        only = SqlQueryStep(query=transform.query)
        return transform.model_copy(update={"query": None, "queries": (only,)})
    steps = transform.queries or ()
    if not steps:
        raise QueryRefusedError("a transform needs a `query` or `queries`")
    if sum(step.alias is None for step in steps) > 1:
        raise QueryRefusedError("only the last of several queries, the output, is without an alias: name the others")
    if steps[-1].alias is not None:
        raise QueryRefusedError(f"the last query is the output and has no alias: remove {steps[-1].alias!r}")
    return transform


def check_preprocess(transform: TransformSql) -> tuple[SqlQueryStep, ...]:
    """The steps to run, the last of which is the output.

    QueryRefusedError unless each is one query over `input` and the steps before it, in Spark's dialect.
    """
    if transform.engine.lower() != ENGINE:
        raise QueryRefusedError(
            f"preprocess has the engine {transform.engine!r}, but queries run on Spark here: "
            f"write them in its dialect and say `engine: {ENGINE}`"
        )
    if transform.temporal_tables:
        raise QueryRefusedError("preprocess has temporalTables, which are for transforms of derivative datasets only")
    steps = normalized(transform).queries or ()
    if len(steps) > _MAX_STEPS:
        raise QueryRefusedError(f"preprocess has {len(steps)} queries, {_MAX_STEPS} at most are run")
    tables = [INPUT]
    for number, step in enumerate(steps, 1):
        try:
            _check_query(step.query, tables)
        except QueryRefusedError as error:
            name = f"query {step.alias!r}" if step.alias else f"query {number}"
            raise QueryRefusedError(f"preprocess, {name}: {error}") from error
        if step.alias is not None:
            _check_alias(step.alias, tables)
            tables.append(step.alias)
    return steps


def _check_alias(alias: str, tables: Collection[str]) -> None:
    if not _ALIAS.fullmatch(alias):
        raise QueryRefusedError(f"preprocess: {alias!r} names no table: use letters, digits and '_'")
    if alias.lower() in map(str.lower, tables):  # Spark does not tell the case of its tables apart
        raise QueryRefusedError(f"preprocess: the name {alias!r} is taken already")


def _check_query(sql: str, tables: Collection[str]) -> None:
    from sqlglot import exp

    query = _parsed(sql)
    if not isinstance(query, exp.Query):
        raise QueryRefusedError(f"it is no query but {_statement(query)}: only SELECT, WITH and UNION are run")
    for node in query.walk():
        if isinstance(node, exp.QueryTransform):
            raise QueryRefusedError("TRANSFORM … USING runs a program: use the functions of SQL")
        if isinstance(node, exp.DDL | exp.DML | exp.Command | exp.Into) and not isinstance(node, exp.Query):
            raise QueryRefusedError(f"it holds {_statement(node)}: only SELECT, WITH and UNION are run")
        if isinstance(node, exp.Table):
            _check_table(node, tables)
        elif isinstance(node, exp.Func) and _function(node) in _FORBIDDEN_FUNCTIONS:
            raise QueryRefusedError(f"the function {_function(node)} calls Java code: use the functions of SQL")


def _parsed(sql: str) -> exp.Expr:
    import sqlglot
    from sqlglot.errors import SqlglotError

    # It warns of statements that it cannot take apart; they are refused with a better message.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)

    if len(sql) > _MAX_QUERY_SIZE:
        raise QueryRefusedError(f"it has {len(sql)} characters, {_MAX_QUERY_SIZE} at most are read")
    try:
        statements = [statement for statement in sqlglot.parse(sql, dialect=ENGINE) if statement is not None]
    except SqlglotError as error:
        raise QueryRefusedError(f"it is not SQL: {_first_line(error)}") from error
    except RecursionError as error:
        raise QueryRefusedError("it is nested too deeply") from error
    if len(statements) != 1:
        raise QueryRefusedError(f"it holds {len(statements)} statements: one query is needed")
    return statements[0]


def _first_line(error: Exception) -> str:
    # sqlglot underlines the place with terminal codes; the first line is the plain reason.
    return str(error).splitlines()[0].rstrip(".")


def _check_table(table: exp.Table, tables: Collection[str]) -> None:
    from sqlglot import exp

    if isinstance(table.this, exp.Func):
        if _function(table.this) not in _TABLE_FUNCTIONS:
            raise QueryRefusedError(f"it reads from the function {_function(table.this)}, which is not allowed")
        return
    name = ".".join(part.name for part in table.parts)
    if table.db or table.catalog or table.args.get("version") or table.args.get("when"):
        raise QueryRefusedError(f"it reads {name}: {_what_may_be_read(tables)}, no files and no catalogs")
    if name not in tables and name not in _named_above(table):
        raise QueryRefusedError(f"it reads the table {name!r}: {_what_may_be_read(tables)}")


def _what_may_be_read(tables: Collection[str]) -> str:
    return f"it may read {' and '.join(sorted(map(repr, tables)))} only"


def _named_above(table: exp.Table) -> Iterator[str]:
    """The names of WITH that the place of a table sees."""
    from sqlglot import exp

    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            for named in node.expressions:
                if named is inside and not node.recursive:
                    break
                yield named.alias
        elif (names := node.args.get("with_") or node.args.get("with")) is not None and names is not inside:
            yield from (named.alias for named in names.expressions)
        inside, node = node, node.parent


def _function(node: exp.Func) -> str:
    from sqlglot import exp

    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return name.strip("`").lower()


def _statement(node: exp.Expr) -> str:
    from sqlglot import exp

    return str(node.this).upper() if isinstance(node, exp.Command) else type(node).__name__.upper()
