"""One module a command, each with `execute(args) -> int`; `graph/cli.py` imports the chosen one."""
