#include "core/compile/sandbox/sandbox_seccomp.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <system_error>

#include "core/base/sanitizer.h"

namespace fusion {
namespace {

constexpr uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);
// The C library falls back on what a filter can look into.
constexpr uint32_t kUnknown = SCMP_ACT_ERRNO(ENOSYS);

// A libseccomp filter under construction; remembers the first thing that went wrong.
class Filter {
 public:
  explicit Filter(uint32_t otherwise) : context_(seccomp_init(otherwise)) {
    if (context_ == nullptr) error_ = ENOMEM;
    // Before Linux 5.16 a filter would slow down the kernels that are timed under it.
    Note(seccomp_attr_set(context_, SCMP_FLTATR_CTL_SSB, 1));
    // Calls of another architecture, and of the one with 32-bit pointers.
    Note(seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, kRefuse));
    Note(seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }
  ~Filter() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  void Add(uint32_t action, int call, std::initializer_list<scmp_arg_cmp> when = {}) {
    const auto count = static_cast<unsigned>(when.size());
    Note(seccomp_rule_add_array(context_, action, call, count, when.begin()));
  }

  absl::StatusOr<std::string> Load() {
    Note(seccomp_load(context_));
    if (error_ == 0) return std::string("seccomp");
    return FailedPrecondition("seccomp: ", std::generic_category().message(error_));
  }

 private:
  void Note(int result) {
    if (result < 0 && error_ == 0) error_ = -result;
  }
  scmp_filter_ctx context_;
  int error_ = 0;
};

// Of the bits `mask` of argument `i`, exactly `bits` are set.
scmp_arg_cmp Masked(unsigned i, uint64_t mask, uint64_t bits) {
  return {i, SCMP_CMP_MASKED_EQ, mask, bits};
}
scmp_arg_cmp Equals(unsigned i, uint64_t value) { return {i, SCMP_CMP_EQ, value, 0}; }
scmp_arg_cmp Differs(unsigned i, uint64_t value) { return {i, SCMP_CMP_NE, value, 0}; }
// Of an argument that the kernel takes for 32 bits, whatever is in the others.
scmp_arg_cmp EqualsWord(unsigned i, uint32_t value) { return Masked(i, ~uint32_t{0}, value); }

// Calls that Debian 12's libseccomp does not name yet; since 5.10 all architectures number alike.
constexpr int kFchmodat2 = 452;
constexpr int kSetxattrat = 463;
constexpr int kRemovexattrat = 466;
constexpr int kFileSetattr = 469;

constexpr int kNoCompilerNeeds[] = {
    SCMP_SYS(socket),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(listen),
    SCMP_SYS(accept),
    SCMP_SYS(accept4),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(fsopen),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(mknod),
    SCMP_SYS(mknodat),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(keyctl),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(shmget),
    SCMP_SYS(msgget),
    SCMP_SYS(semget),
    SCMP_SYS(mq_open),
    // Files by their paths, or by descriptors that cannot write: landlock knows truncate since
    // version 3, and the others not at all. The linker's chmod of its output may fail: a kernel is
    // read, not executed.
    SCMP_SYS(truncate),
    SCMP_SYS(chmod),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    kFchmodat2,
    SCMP_SYS(chown),
    SCMP_SYS(fchown),
    SCMP_SYS(lchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr),
    kSetxattrat,
    SCMP_SYS(removexattr),
    SCMP_SYS(lremovexattr),
    SCMP_SYS(fremovexattr),
    kRemovexattrat,
    kFileSetattr,
    SCMP_SYS(utime),
    SCMP_SYS(utimes),
    SCMP_SYS(futimesat),
    SCMP_SYS(utimensat),
    // Other processes of this user. Landlock keeps signals in since version 6; kill and tgkill,
    // which a worker needs, fusion-exec refuses to what it starts.
    SCMP_SYS(tkill),
    SCMP_SYS(rt_sigqueueinfo),
    SCMP_SYS(rt_tgsigqueueinfo),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(sched_setaffinity),
    SCMP_SYS(sched_setscheduler),
    SCMP_SYS(sched_setparam),
    SCMP_SYS(sched_setattr),
    SCMP_SYS(setpriority),
    SCMP_SYS(ioprio_set),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages),
};

// Flags of files, and signals for others by way of descriptors.
constexpr uint32_t kNoCompilerControls[] = {FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FIOSETOWN,
                                            SIOCSPGRP};
constexpr uint32_t kNoCompilerSignals[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};

constexpr int kKernelsNeed[] = {
    // Memory.
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mprotect),
    SCMP_SYS(madvise),
    SCMP_SYS(mincore),
    SCMP_SYS(memfd_create),
    SCMP_SYS(membarrier),
    // Threads and time.
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(restart_syscall),
    // Its own signals: how a crash ends.
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending),
    SCMP_SYS(sigaltstack),
    // The descriptors it has. No message of its can carry one.
    SCMP_SYS(read),
    SCMP_SYS(pread64),
    SCMP_SYS(readv),
    SCMP_SYS(write),
    SCMP_SYS(pwrite64),
    SCMP_SYS(writev),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendto),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    // What the dynamic linker and the C library ask about files; their contents are not in it.
    SCMP_SYS(stat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(getcwd),
    // Facts.
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrandom),
    SCMP_SYS(getrusage),
    SCMP_SYS(getrlimit),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    // AMX is asked for with it; otherwise it is about the registers of its own threads.
    SCMP_SYS(arch_prctl),
};

// O_TRUNC empties a file whatever it is opened for, and landlock before version 3 looks at that
// alone. 3 is neither reading nor writing.
void RefuseTruncatingReaders(Filter* filter) {
  constexpr uint64_t kMask = O_ACCMODE | O_TRUNC;
  for (int access : {O_RDONLY, O_ACCMODE}) {
    const auto bits = static_cast<uint64_t>(access | O_TRUNC);
    filter->Add(kRefuse, SCMP_SYS(open), {Masked(1, kMask, bits)});
    filter->Add(kRefuse, SCMP_SYS(openat), {Masked(2, kMask, bits)});
  }
  filter->Add(kUnknown, SCMP_SYS(openat2));
}

}  // namespace

absl::StatusOr<std::string> EnterCompilerFilter() {
  Filter filter(SCMP_ACT_ALLOW);
  for (int call : kNoCompilerNeeds) filter.Add(kRefuse, call);
  RefuseTruncatingReaders(&filter);
  for (uint32_t what : kNoCompilerControls) {
    filter.Add(kRefuse, SCMP_SYS(ioctl), {EqualsWord(1, what)});
  }
  for (uint32_t what : kNoCompilerSignals) {
    filter.Add(kRefuse, SCMP_SYS(fcntl), {EqualsWord(1, what)});
  }
  filter.Add(kRefuse, SCMP_SYS(prlimit64), {Differs(0, 0)});
  for (int space : {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWIPC,
                    CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    const auto bit = static_cast<uint64_t>(space);
    filter.Add(kRefuse, SCMP_SYS(clone), {Masked(0, bit, bit)});
  }
  filter.Add(kUnknown, SCMP_SYS(clone3));
  return filter.Load();
}

absl::StatusOr<std::string> EnterKernelFilter() {
  Filter filter(kRefuse);
  for (int call : kKernelsNeed) filter.Add(SCMP_ACT_ALLOW, call);
  // Threads, but no processes.
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(clone),
             {Masked(0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM)});
  filter.Add(kUnknown, SCMP_SYS(clone3));
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill), {Equals(0, static_cast<uint64_t>(getpid()))});
  // O_TMPFILE holds a bit of O_DIRECTORY, which is no writing.
  constexpr uint64_t kWriting =
      O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(open), {Masked(1, kWriting, 0)});
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(openat), {Masked(2, kWriting, 0)});
  // Not F_SETOWN and the like, with which the kernel sends signals to others.
  for (int what : {F_GETFD, F_SETFD, F_GETFL, F_SETFL}) {
    filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(fcntl), {Equals(1, static_cast<uint64_t>(what))});
  }
  // Asking for its own limits, not setting any.
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), {Equals(0, 0), Equals(2, 0)});
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(prctl), {Equals(0, PR_SET_NAME)});
  filter.Add(SCMP_ACT_ALLOW, SCMP_SYS(prctl), {Equals(0, PR_SET_VMA)});
  if (kSanitized) {
    // Whether an address can be read they find out by writing from it to a pipe.
    for (int call : {SCMP_SYS(getdents64), SCMP_SYS(pipe), SCMP_SYS(pipe2)}) {
      filter.Add(SCMP_ACT_ALLOW, call);
    }
  }
  return filter.Load();
}

}  // namespace fusion
