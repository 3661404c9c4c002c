#include "core/compile/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <vector>

namespace fusion {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
// Calls of the 32-bit-pointer ABI carry this bit; nothing here uses them.
constexpr unsigned kX32Bit = 0x40000000;

constexpr unsigned kRefused[] = {
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_userfaultfd,
    SYS_io_uring_setup,
};

bool InstallFilter() {
  std::vector<sock_filter> program;
  auto load = [&](size_t offset) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
  };
  auto refuse_if = [&](unsigned comparison, unsigned value, bool when) {
    program.push_back(BPF_JUMP(BPF_JMP | comparison | BPF_K, value,
                               static_cast<unsigned char>(when ? 0 : 1),
                               static_cast<unsigned char>(when ? 1 : 0)));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  };
  load(offsetof(seccomp_data, arch));
  refuse_if(BPF_JEQ, kArchitecture, /*when=*/false);
  load(offsetof(seccomp_data, nr));
  refuse_if(BPF_JGE, kX32Bit, /*when=*/true);
  for (unsigned call : kRefused) refuse_if(BPF_JEQ, call, /*when=*/true);
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}
#else
bool InstallFilter() { return false; }
#endif

}  // namespace

std::string EnterSandbox() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "none";
  return InstallFilter() ? "seccomp" : "no_new_privs";
}

}  // namespace fusion
