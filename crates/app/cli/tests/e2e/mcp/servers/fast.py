"""A server on FastMCP, on standard streams."""

from dataclasses import dataclass

from fastmcp import Context, FastMCP

mcp = FastMCP("fast")


@dataclass
class Person:
    name: str
    age: int


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@mcp.tool
async def greet(ctx: Context) -> str:
    """Greets whom it asked for a name."""
    await ctx.report_progress(1, 2, "asking")
    said = await ctx.elicit("Who are you?", response_type=Person)
    return f"Hello {said.data.name}, {said.data.age}!" if said.action == "accept" else "Bye."


@mcp.resource("fast://motto")
def motto() -> str:
    return "slow is smooth"


mcp.run(show_banner=False)
