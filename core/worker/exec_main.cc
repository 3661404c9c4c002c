// bin/fusion-exec: imposes limits on a program and starts it. posix_spawn can do neither by itself,
// and the service must not fork.
//
//   fusion-exec exec|guard PARENT KEEP CPU_S MEMORY FILE_BYTES OPEN_FILES first|- PROGRAM
//   [ARGUMENT...]
//
// exec: becomes the program, which dies with the process PARENT. guard: stays as its parent in the
// same process group, and kills the whole group when PARENT dies: a compiler driver's own children
// would otherwise live on. first: it goes first where memory runs out. Nothing that guard starts
// can leave that group, as daemons do, or signal any other process, where system calls can be
// filtered. Descriptors above KEEP are closed; a limit of 0 is no limit; core files are off. Uses
// the C library only, to start within a millisecond.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// The exit code of shells for "cannot be executed".
constexpr int kCannotStart = 126;

[[noreturn]] void Fail(const char* what, const char* argument) {
  fprintf(stderr, "fusion-exec: %s %s: %s\n", what, argument, strerror(errno));
  _exit(kCannotStart);
}

void Limit(__rlimit_resource resource, const char* text) {
  rlim_t value = strtoull(text, nullptr, 10);
  if (value == 0 && resource != RLIMIT_CORE) return;
  rlimit limit{value, value};
  // At the hard limit comes SIGKILL, which says nothing; at the soft one SIGXCPU.
  if (resource == RLIMIT_CPU) ++limit.rlim_max;
  // A hard limit that is lower already stays.
  rlimit now{};
  if (getrlimit(resource, &now) == 0 && now.rlim_max < limit.rlim_max) {
    limit.rlim_max = now.rlim_max;
    if (now.rlim_max < limit.rlim_cur) limit.rlim_cur = now.rlim_max;
  }
  if (setrlimit(resource, &limit) != 0) Fail("setrlimit", text);
}

// If memory runs out, the kernel kills this program and its descendants before the service.
void GoFirst() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;  // a machine without it, or inherited: files are out of reach by then
  (void)!write(fd, "1000", 4);
  close(fd);
}

void DieWith(pid_t parent, int signal_number) {
  if (prctl(PR_SET_PDEATHSIG, signal_number) != 0) Fail("prctl", "PR_SET_PDEATHSIG");
  // The parent may have died before the line above took effect.
  if (getppid() != parent) _exit(kCannotStart);
}

// Refuses setsid and setpgid from now on, if the kernel lets it: the group is what gets killed; and
// signals but to that group. No filter knows the numbers of the processes to come, so abort() ends
// in SIGSEGV here.
void StayInGroup() {
#if defined(__x86_64__)
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 9),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 7, 0),  // calls with 32-bit pointers
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsid, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setpgid, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // its low half: the number
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  }
#endif
}

// Waits for `child`; ends the way it ended. SIGTERM (the parent's death) ends the whole group.
[[noreturn]] void Guard(pid_t child, const sigset_t& watched) {
  for (;;) {
    int number = sigwaitinfo(&watched, nullptr);
    if (number == SIGTERM) kill(0, SIGKILL);
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != child) continue;
    if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    // raise() is refused, too. Whoever else is left in the group is about to be killed.
    kill(0, WTERMSIG(status));
    _exit(kCannotStart);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 10) {
    fprintf(stderr, "fusion-exec: started by fusiond, not by people\n");
    return 2;
  }
  bool guard = strcmp(argv[1], "guard") == 0;
  auto parent = static_cast<pid_t>(strtol(argv[2], nullptr, 10));
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGCHLD);
  if (guard) sigprocmask(SIG_BLOCK, &watched, nullptr);
  DieWith(parent, guard ? SIGTERM : SIGKILL);
  close_range(static_cast<unsigned>(strtoul(argv[3], nullptr, 10)) + 1, ~0U, 0);
  if (strcmp(argv[8], "first") == 0) GoFirst();
  Limit(RLIMIT_CORE, "0");
  Limit(RLIMIT_CPU, argv[4]);
  Limit(RLIMIT_AS, argv[5]);
  Limit(RLIMIT_FSIZE, argv[6]);
  Limit(RLIMIT_NOFILE, argv[7]);
  if (!guard) {
    execv(argv[9], argv + 9);
    Fail("starting", argv[9]);
  }
  StayInGroup();
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  errno = posix_spawn(&child, argv[9], nullptr, &attributes, argv + 9, environ);
  if (errno != 0) Fail("starting", argv[9]);
  Guard(child, watched);
}
