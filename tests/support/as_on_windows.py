"""Runs a program with a torchspore that sees the standard library of Windows: `python as_on_windows.py program.py`, or `-m module`.

Functions, constants and modules that Windows lacks are absent from the modules that torchspore imports, `os.name` is "nt", and there is no
/proc. The names of its files have backslashes in tracebacks. Only torchspore's modules see that, because the standard library and torch of
this machine need the real ones. Paths, console and file locks stay those of this machine.
"""
from __future__ import annotations

import ast
import importlib
import importlib.machinery
import runpy
import sys
import types
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any

ABSENT_MODULES = {"crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "resource", "spwd", "syslog", "termios", "tty"}
ABSENT_NAMES = {
    "os": """
        fork forkpty register_at_fork posix_spawn posix_spawnp getuid geteuid getgid getegid getgroups getpgid getpgrp getsid setsid setpgid
        killpg nice sched_getaffinity sched_setaffinity sched_yield sched_getscheduler sched_setscheduler sched_param SCHED_BATCH SCHED_IDLE
        SCHED_OTHER wait wait3 wait4 waitid WNOHANG WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG P_PID P_ALL WEXITED WNOWAIT memfd_create
        MFD_CLOEXEC O_TMPFILE O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_SYNC O_DSYNC chown fchown fchmod lchown getpriority setpriority
        PRIO_PROCESS PRIO_PGRP statvfs fstatvfs sysconf confstr uname mkfifo mknod pread pwrite preadv pwritev readv writev sendfile
        getloadavg copy_file_range splice eventfd posix_fallocate posix_fadvise openpty ttyname ctermid setuid setgid getxattr setxattr
        pipe2 lockf F_LOCK F_ULOCK F_TLOCK fdatasync sync fchdir pidfd_open unshare getrandom tcgetpgrp
    """,
    "signal": """
        SIGKILL SIGALRM SIGUSR1 SIGUSR2 SIGHUP SIGCHLD SIGQUIT SIGPIPE SIGSTOP SIGCONT SIGTSTP SIGBUS SIGPROF SIGVTALRM SIGRTMIN SIGRTMAX
        ITIMER_REAL setitimer getitimer pthread_sigmask pthread_kill sigwait sigwaitinfo sigtimedwait sigpending alarm pause siginterrupt
        SIG_BLOCK SIG_UNBLOCK SIG_SETMASK
    """,
    "faulthandler": "register unregister",
    "socket": "AF_UNIX SO_REUSEPORT SO_PEERCRED send_fds recv_fds MSG_DONTWAIT MSG_NOSIGNAL",
    "mmap": "MAP_PRIVATE MAP_SHARED MAP_ANONYMOUS MAP_ANON PROT_READ PROT_WRITE PROT_EXEC MADV_DONTNEED MADV_HUGEPAGE MADV_WILLNEED",
    "time": "clock_gettime CLOCK_MONOTONIC CLOCK_REALTIME CLOCK_PROCESS_CPUTIME_ID CLOCK_THREAD_CPUTIME_ID CLOCK_BOOTTIME tzset",
    "select": "poll epoll kqueue POLLIN POLLOUT POLLHUP POLLERR",
    "sys": "getdlopenflags setdlopenflags abiflags",
    "ctypes": "", "platform": "", "subprocess": "", "multiprocessing": "",
}
PREFIX = "windows_"


def without_names(name: str) -> types.ModuleType:
    """Return a copy of a module without the names that it lacks on Windows."""
    module, missing = types.ModuleType(name), frozenset(ABSENT_NAMES[name].split())
    module.__dict__.update({key: value for key, value in vars(importlib.import_module(name)).items() if key not in missing})
    return module


class Imports(ast.NodeTransformer):
    """Lets import statements find the copies, and no /proc."""

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            if alias.name in ABSENT_NAMES:
                alias.asname = alias.asname or alias.name
            if alias.name in ABSENT_NAMES or alias.name in ABSENT_MODULES:
                alias.name = PREFIX + alias.name
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level == 0 and (node.module in ABSENT_NAMES or node.module in ABSENT_MODULES):
            node.module = f"{PREFIX}{node.module}"
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and node.value.startswith("/proc/"):
            node.value = "/absent" + node.value
        return node


class Loader(importlib.machinery.SourceFileLoader):
    """Compiles the changed source of a module."""

    def get_code(self, fullname: str) -> Any:
        tree = Imports().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(tree), self.path.replace("/", "\\"), "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Loads the modules of torchspore by `Loader`."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> Any:
        if fullname.partition(".")[0] != "torchspore":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def only_spawn(method: str | None = None) -> Any:
    """`multiprocessing.get_context` of Windows."""
    import multiprocessing

    if method not in (None, "spawn"):
        raise ValueError(f"cannot find context for {method!r}")
    return multiprocessing.get_context("spawn")


def refuse_handles(*arguments: Any, pass_fds: Any = (), preexec_fn: Any = None, start_new_session: bool = False, **keywords: Any) -> Any:
    """`subprocess.Popen` of Windows."""
    import subprocess

    if pass_fds or preexec_fn or start_new_session:
        raise ValueError("pass_fds, preexec_fn and sessions are not supported on Windows platforms")
    return subprocess.Popen(*arguments, **keywords)


class Library:
    """`ctypes.CDLL` of Windows, which needs a name."""

    def __new__(cls, name: Any, *arguments: Any, **keywords: Any) -> Any:
        import ctypes

        if name is None:
            raise TypeError("bad argument type for built-in operation")
        return ctypes.CDLL(name, *arguments, **keywords)


def install() -> None:
    """Let torchspore, which must not be imported yet, see the changed modules."""
    for name in ABSENT_NAMES:
        sys.modules[PREFIX + name] = without_names(name)
    changes: dict[str, dict[str, Any]] = {
        "os": {"name": "nt", "sep": "\\"}, "sys": {"platform": "win32"}, "ctypes": {"CDLL": Library},
        "subprocess": {"Popen": refuse_handles},
        "platform": {"libc_ver": lambda *_: ("", ""), "system": lambda: "Windows"}, "multiprocessing": {"get_context": only_spawn},
    }
    for name, values in changes.items():
        vars(sys.modules[PREFIX + name]).update(values)
    sys.meta_path.insert(0, Finder())


if __name__ == "__main__":
    import torch  # noqa: F401  it needs the real modules

    install()
    import torchspore

    torchspore.install()
    sys.argv = sys.argv[1:]
    if sys.argv[0] == "-m":
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
