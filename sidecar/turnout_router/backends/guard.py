"""Run a command that cannot outlive the router: `python -I -S guard.py ROUTER_PID COMMAND…`.

Problem: a killed router cannot stop what it started, and a GPU that a forgotten process holds is lost. Linux can kill a
process when its parent dies, but that reaches only the direct child: a server behind `sh -c` would live on.

Idea: this small program stays between the two, as leader of a process group of its own. It is told when the router has
died and then kills its whole group; the command in turn is killed when this program dies. SIGTERM to the group is for
the command; this program waits and ends as the command did.

Only the standard library, and run without site packages: it must start in milliseconds.
"""

import ctypes
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

PR_SET_PDEATHSIG = 1
CANNOT_RUN = 127


def main() -> NoReturn:
    """Become the guard of one command."""
    router, command = int(sys.argv[1]), sys.argv[2:]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, _kill_group)
    _tell_me_when_my_parent_dies(signal.SIGUSR1)
    if os.getppid() != router:  # it died before we could ask
        os._exit(CANNOT_RUN)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, guard)
    _end_like(_wait(child))


def _become(command: list[str], guard: int) -> NoReturn:
    _tell_me_when_my_parent_dies(signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(CANNOT_RUN)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606  the command is what the node's owner declared
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
        os._exit(CANNOT_RUN)


def _wait(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _end_like(code: int) -> NoReturn:
    if code < 0:
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _kill_group(_number: int, _frame: FrameType | None) -> None:
    os.killpg(0, signal.SIGKILL)


def _tell_me_when_my_parent_dies(number: signal.Signals) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)


if __name__ == "__main__":
    main()
