"""An evaluator without a judge: it does what the candidate's source says."""

EVALUATOR = """
import json, os, pathlib, signal, subprocess, sys, time
log = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    request = json.loads(line)
    words = request["body"].get("candidate", {}).get("source", "").split()
    with log.open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "task": request["task"], "env": dict(os.environ)}) + "\\n")
    if "die" in words:
        os._exit(3)
    if "killed" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if "die-once" in words and log.read_text().count("\\n") == 1:
        os._exit(3)
    if "sleep" in words:
        time.sleep(60)
    if "stopped" in words:
        os.kill(os.getpid(), signal.SIGSTOP)
    if "pause" in words:
        time.sleep(0.2)
    while "wait" in words and not log.with_name("go").exists():
        time.sleep(0.005)
    figures = {"median_ms": 1.0} if request["task"] == "BenchmarkTask" else {"verify_s": time.monotonic()}
    reply = {"id": request["id"], "result": {"status": "ok", **figures}}
    if "refuse" in words:
        reply = {"id": request["id"], "error": {"type": "ProblemError", "message": "reference.py: no tensor"}}
    if "babble" in words:
        print("PASS", flush=True)
    print(json.dumps(reply), flush=True)
"""
