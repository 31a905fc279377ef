"""Drops a torch.py where the next Python may look for one."""

for folder in (".", "/tmp", *sys.path, "WRITE_FOLDER", "TOOLS_FOLDER"):
    for name in ("torch.py", "sitecustomize.py"):
        try:
            with open(os.path.join(folder, name), "x"):
                pass
        except OSError:
            continue
