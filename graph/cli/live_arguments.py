"""The commands that speak to a search that has begun: `mailbox`, `idea`, `seed` and `stop`."""

from __future__ import annotations

from ridgeline.graph.cli.parser import Commands, Parser, describe_commands
from ridgeline.graph.cli.values import word


def add_mailbox(commands: Commands[Parser]) -> None:
    """Add `mailbox`, whose actions are commands too."""
    mailbox = commands.add_parser("mailbox", help="the requests of a search with --model mailbox, and their answers")
    actions = mailbox.add_subparsers(dest="action", metavar="ACTION", required=True)
    words = {
        "list": ("the requests that wait for an answer", "one JSON array of them, without their prompts"),
        "show": ("one request: the whole prompt, and what an answer is", "one JSON object, with the answer's schema"),
        "answer": ("answer a request; a refusal says what to mend", "one JSON object: its id, and how many still wait"),
    }
    for name, (help_, json_help) in words.items():
        action = actions.add_parser(name, help=help_)
        action.add_argument("run", type=word, help="a run's folder or its name")
        if name != "list":
            nargs = "?" if name == "show" else None
            action.add_argument("id", type=word, nargs=nargs, help="the request's id (show: the oldest without one)")
        if name == "answer":
            action.add_argument(
                "file", type=word, nargs="?", default="-", help="Markdown, JSON or a kernel's source; - reads stdin"
            )
        action.add_argument("--json", action="store_true", help=json_help)
    describe_commands(actions)


def add_steering(commands: Commands[Parser]) -> None:
    """Add `idea`, `seed` and `stop`."""
    idea = commands.add_parser("idea", help="tell a search an idea of your own; it enters with the next round's")
    idea.add_argument("run", type=word, help="a run's folder or its name")
    idea.add_argument("text", type=word, help="the idea in plain words")
    seed = commands.add_parser(
        "seed", help="give a search a kernel of your own; it is judged when the next round begins"
    )
    seed.add_argument("run", type=word, help="a run's folder or its name")
    seed.add_argument("file", type=word, help="a kernel's source, as the problem's seeds are")
    stop = commands.add_parser("stop", help="stop a search that runs, resumably, after the steps in flight")
    stop.add_argument("run", type=word, help="a run's folder or its name")
    for command in (idea, seed, stop):
        command.add_argument(
            "--json", action="store_true", help="one JSON object: the id of what was told, and whether the search runs"
        )
