"""Run a command that cannot outlive the router: `python -I -S guard.py ROUTER_PID COMMAND…`.

Problem: a killed router cannot stop what it started, and a GPU that a forgotten process holds is lost. Linux can kill a
process when its parent dies, but that reaches only the direct child: a server behind `sh -c` would live on.

Idea: this small program stays between the two and is told when the router has died. The command runs in a process group
of its own, is killed when this program dies, and everything that it leaves behind becomes a child of this program. So:

* SIGTERM here → SIGTERM to the command's group;
* SIGUSR1 here, or the router's death → SIGKILL to the group;
* the command ended → what is left of it is killed and collected, then this program ends as the command did.

When this program has ended, nothing of the command is left. Only the standard library, and run without site packages:
it must start in milliseconds.
"""

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_RUN = 127
KILL = signal.SIGUSR1


def main() -> NoReturn:
    """Become the guard of one command."""
    router, command = int(sys.argv[1]), sys.argv[2:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signals = {signal.SIGTERM, KILL}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # until there is a group that could get them
    _prctl(PR_SET_PDEATHSIG, KILL)
    if os.getppid() != router:  # it died before we could ask
        os._exit(CANNOT_RUN)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, guard)
    with contextlib.suppress(PermissionError, ProcessLookupError):  # whichever of the two is first
        os.setpgid(child, child)
    signal.signal(signal.SIGTERM, lambda *_: _signal_group(child, signal.SIGTERM))
    signal.signal(KILL, lambda *_: _signal_group(child, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    code = _wait_for(child)
    _end_rest(child)
    _end_like(code)


def _become(command: list[str], guard: int) -> NoReturn:
    os.setpgid(0, 0)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(CANNOT_RUN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.execvp(command[0], command)  # noqa: S606  the command is what the node's owner declared
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
        os._exit(CANNOT_RUN)


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _end_rest(group: int) -> None:
    """Kill and collect what the command left behind, also what left its group."""
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while True:
            _signal_group(group, signal.SIGKILL)
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os.wait()


def _children() -> list[int]:
    with contextlib.suppress(OSError):  # a kernel without this list: the group is what we can reach
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()]
    return []


def _end_like(code: int) -> NoReturn:
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)


if __name__ == "__main__":
    main()
