"""The server: its tools and resources, and what a client is told when something is wrong: one line."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.exceptions import ResourceError, ToolError
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ContentBlock
from pydantic import AnyUrl, ValidationError

from ridgeline import __version__
from ridgeline.graph.mcp.config import ServerConfig
from ridgeline.graph.mcp.resources import Resources
from ridgeline.graph.mcp.tools import Tools
from ridgeline.tools.errors import InputError, RidgelineError, one_line
from ridgeline.tools.machine.logs import logger_of
from ridgeline.tools.machine.os_errors import is_users_to_mend
from ridgeline.tools.records.printable import printable
from ridgeline.tools.wording import did_you_mean

logger = logger_of(__name__)

INSTRUCTIONS = """Ridgeline searches for a faster native kernel that does the work of a PyTorch module, and proves it.
start_search returns at once; wait (again and again) until is_running is false, which `says` explains; then best and ship,
or resume_search where is_resumable.
With models ["mailbox"] you write the ideas and the kernels: whenever wait returns ids in `waiting`, take each with
next_request and give it with answer; several may be answered side by side. evaluate_kernel judges a kernel without a
search. A search outlives this server: list_runs finds it again. It goes on until it is over or stop is called."""


class RidgelineServer(FastMCP[None]):
    """FastMCP with one-line errors, and none for an argument that no tool has."""

    def __init__(self, config: ServerConfig, security: TransportSecuritySettings | None = None) -> None:
        """Take the server's configuration, and the hosts and origins that HTTP requests may name."""
        super().__init__(
            "ridgeline", INSTRUCTIONS, log_level="WARNING", transport_security=security, warn_on_duplicate_tools=True
        )
        self._mcp_server.version = __version__  # FastMCP takes none, and would tell its own
        for tool, hints in Tools(config).all():
            self.add_tool(tool, description=inspect.getdoc(tool), annotations=hints, structured_output=True)
        self._resources = Resources(config.runs_dir)
        for template in self._resources.templates():
            self.resource(
                template.uri, name=template.name, description=template.description, mime_type=template.mime_type
            )(template.read)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Sequence[ContentBlock] | dict[str, Any]:
        """Call a tool.

        Raises:
            ToolError: with one line, which the client gets as an answer with `isError`.
        """
        self._refuse_unknown(name, arguments)
        given = {each: value for each, value in arguments.items() if value is not None}  # some clients send null
        try:
            return await super().call_tool(name, given)
        except ToolError as error:
            raise ToolError(_line(error)) from error

    async def read_resource(self, uri: AnyUrl | str) -> Iterable[ReadResourceContents]:
        """Read a resource.

        Raises:
            ResourceError: with one line.
        """
        try:
            found = await asyncio.to_thread(self._resources.read, str(uri))
        except (InputError, OSError) as error:
            raise ResourceError(_line(error)) from error
        return [ReadResourceContents(content=found.text, mime_type=found.mime_type)]

    def _refuse_unknown(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._tool_manager.get_tool(name)
        known = list(tool.parameters["properties"]) if tool else list(arguments)
        for each in arguments:
            if each not in known:
                remedy = did_you_mean(each, known) or f"it takes {', '.join(known) or 'none'}"
                raise ToolError(printable(f"{name}: no argument {each!r}; {remedy}"))


def _line(error: BaseException) -> str:
    """Return in one line what went wrong; of a defect, also in the log."""
    cause: BaseException = error.__cause__ or error
    if isinstance(cause, ValidationError):
        detail = cause.errors()[0]
        where = ".".join(str(part) for part in detail["loc"])
        return printable(f"{where}: {detail['msg']}")
    if isinstance(cause, InputError | ToolError):
        return printable(one_line(cause))
    if isinstance(cause, OSError) and is_users_to_mend(cause, names_paths=True):
        return printable(f"{cause.filename}: {cause.strerror}")
    if isinstance(cause, RidgelineError):
        return printable(f"the machine failed: {one_line(cause)}")
    logger.error("a defect, please report", exc_info=cause)
    return printable(f"internal error, please report: {type(cause).__name__}: {one_line(cause)}")
