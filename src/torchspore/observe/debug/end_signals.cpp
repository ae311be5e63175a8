// Signal handlers by which the watcher (blackbox/watcher.py) ends a program while C code holds Python's lock.
#include <csignal>
#include <unistd.h>

namespace {
int exit_code;

// The thread stays here until the process ends: a sleep that the signal woke must not return to the program's code.
void park(int) { for (;;) pause(); }

void leave(int) { _exit(exit_code); }
}

// Installs both handlers. faulthandler, registered on `stack_signal` afterwards with chain=True, calls `park` when it has written the stacks.
extern "C" int torchspore_install_end_signals(int stack_signal, int exit_signal, int code) {
  exit_code = code;
  struct sigaction parking {};
  parking.sa_handler = park;
  struct sigaction leaving {};
  leaving.sa_handler = leave;
  return sigaction(stack_signal, &parking, nullptr) | sigaction(exit_signal, &leaving, nullptr);
}
