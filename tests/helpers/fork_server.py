"""Starts experiments in forked processes, which saves the seconds of loading TensorFlow.

The server loads all modules, then forks a process for each requested experiment before any TensorFlow session exists.
It reads requests as JSON lines from standard input; `test_resume.py` starts it.
"""
import importlib
import itertools
import json
import os
import resource
import signal
import sys
import traceback

SCRIPTS = ("cem", "e_maml", "maml_trpo", "pro_mp", "vpg_maml")


def serve():
    """Answers `{"start": ...}` with a process id, and `{"wait": process id}` with the exit status of the process."""
    for name in SCRIPTS:
        importlib.import_module(f"experiments.{name}")
    for name in ("meta_algos", "meta_trainer", "policies", "local_runner", "run"):
        importlib.import_module(f"meta_policy_search.{name}")
    importlib.import_module("matplotlib.figure")
    print("ready", flush=True)
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "wait" in request:
            print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            run(**request["start"])
        print(pid, flush=True)


def run(script, arguments, output, kill_at=None, largest_file=None):
    """Runs an experiment in this process and exits.

    Args:
        script: name of the experiment.
        arguments: its flags.
        output: file that receives the standard output.
        kill_at: kills the process at this file operation, counted from 0.
        largest_file: maximum file size in bytes.
    """
    status = 70
    try:
        os.setpgid(0, 0)
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        if kill_at is not None:
            kill_at_operation(kill_at)
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        status = sys.modules[f"experiments.{script}"].main(arguments)
    except SystemExit as stop:
        status = stop.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def kill_at_operation(number):
    """Kills this process at the given file operation: before it (a rename, say), or halfway through a snapshot."""
    from meta_policy_search.utils import snapshotter

    count = itertools.count()

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def killing(original):
        def operation(*args, **kwargs):
            if next(count) == number:
                kill()
            return original(*args, **kwargs)

        return operation

    def dump_half(params, file):
        data = snapshotter.cloudpickle.dumps(params)
        if next(count) == number:
            file.write(data[: len(data) // 2])
            file.flush()
            kill()
        file.write(data)

    for name in ("fsync", "replace", "link", "remove", "truncate"):
        setattr(os, name, killing(getattr(os, name)))
    snapshotter.cloudpickle.dump = dump_half


if __name__ == "__main__":
    serve()
