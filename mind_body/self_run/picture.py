"""Rule: the picture of the table, for the docs: a Mermaid state diagram, and the rows in their order."""

from mind_body.self_run.decide import TABLE, Row, State


def render_picture() -> str:
    """The table for the docs: as a Mermaid state diagram, and as rows."""
    arrows = [f"    {row.state} --> {_target(row)}: {row.when} / {row.does}" for row in TABLE if row.does != "wait"]
    cells = [f"| {row.state} | {row.when} | {row.does} | {row.to} |" for row in TABLE]
    diagram = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.OPENING}", *arrows, "```"]
    return "\n".join([*diagram, "", "| state | when | do | then |", "| --- | --- | --- | --- |", *cells])


def _target(row: Row) -> str:
    return "[*]" if row.to is State.ENDED else str(row.to)
