"""One module a command, each with `execute(args) -> int`; `graph/cli/__init__.py` imports the chosen one."""
