from __future__ import annotations

import signal
import subprocess
import sys
import threading

from odf_common.child_process import tied_to_this_process


def test_the_command_runs_as_if_it_stood_alone() -> None:
    done = subprocess.run(
        tied_to_this_process([sys.executable, "-c", "import sys; print(sys.argv[1]); sys.exit(7)", "a b"]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b\n", "")


def test_a_program_that_is_not_there_is_named() -> None:
    done = subprocess.run(tied_to_this_process(["/no/such"]), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "cannot run /no/such: No such file or directory\n")


def test_it_ends_with_the_thread_that_started_it() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        child = subprocess.Popen(tied_to_this_process(["sh", "-c", "echo runs; exec sleep 60"]), stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"runs\n"
        child.stdout.close()
        started.append(child)

    starter = threading.Thread(target=start)
    starter.start()
    starter.join()
    assert started[0].wait(20) == -signal.SIGKILL
