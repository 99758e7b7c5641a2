"""What is measured with large files: gives the file back that it is given."""

from pathlib import Path

from wharf_sdk import Context, tool


@tool
def copy(data: Path, context: Context) -> dict:
    """Copies a file."""
    context.cost(0)
    return {"copy": data}
