"""The command `mcp`, which serves agents."""

from __future__ import annotations

from ridgeline.graph.cli.parser import Commands, Parser
from ridgeline.graph.cli.values import port, word


def add_mcp(commands: Commands[Parser]) -> None:
    """Add `mcp`."""
    mcp = commands.add_parser(
        "mcp",
        help="serve searches to a coding agent (Model Context Protocol)",
        description="Serve searches to a coding agent (Model Context Protocol). Its client starts this command: how to "
        "name it there, and what each tool does, is in docs/agents.md.",
    )
    mcp.add_argument("--runs-dir", type=word, default="runs", metavar="DIR", help="the folder of runs (default runs)")
    mcp.add_argument("--http", action="store_true", help="serve over HTTP instead of standard input and output")
    http = mcp.add_argument_group("with --http")
    http.add_argument(
        "--host", type=word, help="address to serve on (default 127.0.0.1); any but loopback needs a token"
    )
    http.add_argument("--port", type=port, metavar="N", help="port (default 8377; 0: a free one)")
    http.add_argument(
        "--token-file", type=word, metavar="FILE", help="holds the token of clients (else RIDGELINE_MCP_TOKEN)"
    )
    http.add_argument(
        "--allow-host",
        action="append",
        type=word,
        metavar="NAME",
        help="a further name by which clients reach the host (repeatable)",
    )
