"""A study's tables on the terminal, and as JSON: every number from the file of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table as Drawn

    from duilian.studies.results import Column, Results, Row, Table, Value

FAILED, NOTHING = "failed", "-"


def facts(results: Results) -> dict[str, Any]:
    """All tables with their values, as one JSON object."""
    plan = results.plan
    return {
        "study": plan.study,
        "folder": results.folder,
        "task": plan.task,
        "seeds": plan.seeds,
        "quick": plan.quick,
        "notes": plan.notes,
        "tables": [
            {
                "id": table.id,
                "title": table.title,
                "compared": table.compared,
                "rows": [_row(results, table, row) for row in table.rows],
            }
            for table in plan.tables
        ],
        "failed": {cell.id: cell.error for cell in results.cells.values() if not cell.done},
        "missing": [id for id in plan.cells if id not in results.cells],
    }


def _row(results: Results, table: Table, row: Row) -> dict[str, Any]:
    values = {}
    for column in table.columns:
        found = results.figure(row, column)
        values[column.key] = {"mean": found.mean, "deviation": found.deviation, "values": found.values}
    pairs = results.comparisons_of(table, row)
    return {
        "id": row.id,
        "title": row.title,
        "cells": row.cells,
        "values": values,
        "paper": row.paper,
        "against": row.against,
        "difference": [None if one is None else one.difference for one in pairs],
        "p_value": [None if one is None else one.p_value for one in pairs],
    }


def print_tables(results: Results) -> None:
    """All tables on stdout."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=220)
    for note in results.plan.notes:
        console.print(f"note: {note}", markup=False)
    for table in results.plan.tables:
        console.print()
        console.print(drawn(results, table))
    for cell in results.cells.values():
        if not cell.done:
            console.print(f"{cell.id} failed: {cell.error}", markup=False)


def drawn(results: Results, table: Table) -> Drawn:
    """A table; numbers of the paper stand in columns of their own, marked where its corpora were others."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    plan = results.plan
    found = Drawn(title=Text(f"{table.title}. {table.caption}"), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    found.add_column("")
    papers = {column.key for column in table.columns if any(column.key in row.paper for row in table.rows)}
    tested = any(row.against is not None for row in table.rows) and table.compared is not None
    for column in table.columns:
        found.add_column(Text(_title(column)), justify="right")
        if column.key in papers and plan.paper is not None:
            other = "" if plan.same_corpora_as_paper else ", other data"
            found.add_column(Text(f"({plan.paper.key}{other})"), justify="right", style="dim")
    if tested:
        found.add_column("difference", justify="right")
        found.add_column("p", justify="right")
    for row in table.rows:
        cells = []
        for column in table.columns:
            cells.append(written(results.figure(row, column), column))
            if column.key in papers and plan.paper is not None:
                cells.append(f"{row.paper[column.key]:.{column.digits}f}" if column.key in row.paper else "")
        if tested:
            cells += _difference(results, table, row)
        title = row.title + (f" ({row.note})" if row.note else "")
        found.add_row(*(Text(cell) for cell in (title, *cells)))
    return found


def _title(column: Column) -> str:
    return column.title + (f" ({column.unit})" if column.unit in ("s", "MB") else "")


def written(value: Value, column: Column) -> str:
    """What stands in a table: the mean and, of several seeds, the deviation; what failed is never a number."""
    if value.failed:
        return FAILED
    mean, deviation = value.mean, value.deviation
    if mean is None:
        return NOTHING
    text = f"{mean:,.{column.digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{column.digits}f}"


def _difference(results: Results, table: Table, row: Row) -> list[str]:
    known = [one for one in results.comparisons_of(table, row) if one is not None]
    if not known or len(known) < len(row.cells):
        return ["", ""]
    mean = sum(one.difference for one in known) / len(known)
    return [f"{mean:+.2f}", " ".join(f"{one.p_value:.2g}" for one in known)]
