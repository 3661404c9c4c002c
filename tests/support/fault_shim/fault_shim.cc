// A library for LD_PRELOAD that lets what a process does to the files of one directory go wrong.
//
//   FUSION_FAULT_DIR      files below it are meant; without it nothing happens
//   FUSION_FAULT_KILL_AT  N: SIGKILL instead of the N-th call that would change such a file
//   FUSION_FAULT_FULL     path of a file: while it is there, calls that need room fail with ENOSPC
//   FUSION_FAULT_COUNT    path of a file: the number of such calls so far, as 8 bytes, at its
//   begin;
//                         2^40 more once the process was killed at one
//
// Calls: write, pwrite, writev, pwritev, fsync, fdatasync, sync_file_range, ftruncate, fallocate,
// posix_fallocate, rename, unlink, open with O_CREAT (which needs room unless the file is there).
// Plain C++ and no library of ours: it must not
// change what it looks at.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>

namespace {

struct Settings {
  char dir[PATH_MAX] = {};
  size_t dir_length = 0;
  char full[PATH_MAX] = {};
  long kill_at = 0;
  std::atomic<long>* count = nullptr;
  std::atomic<long> own_count{0};
};

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// Children of the process, compilers above all, are not meant: they get other pids, but the
// variables too; they do not write below the directory.
Settings& Read() {
  static Settings settings;
  static const bool once = [] {
    const char* dir = getenv("FUSION_FAULT_DIR");
    if (dir != nullptr) {
      snprintf(settings.dir, sizeof(settings.dir), "%s/", dir);
      settings.dir_length = strlen(settings.dir);
    }
    if (const char* full = getenv("FUSION_FAULT_FULL")) {
      snprintf(settings.full, sizeof(settings.full), "%s", full);
    }
    if (const char* kill_at = getenv("FUSION_FAULT_KILL_AT")) settings.kill_at = atol(kill_at);
    settings.count = &settings.own_count;
    const char* count = getenv("FUSION_FAULT_COUNT");
    const int fd = count != nullptr ? open(count, O_RDWR | O_CLOEXEC) : -1;  // must exist
    if (fd >= 0) {
      void* page =
          mmap(nullptr, sizeof(std::atomic<long>), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (page != MAP_FAILED) settings.count = static_cast<std::atomic<long>*>(page);
      static const auto real_close = Next<int (*)(int)>("close");
      real_close(fd);
    }
    return true;
  }();
  (void)once;
  return settings;
}

bool IsMeant(const char* path) {
  const Settings& s = Read();
  return s.dir_length > 0 && path != nullptr && strncmp(path, s.dir, s.dir_length) == 0;
}

bool IsMeant(int fd) {
  if (Read().dir_length == 0) return false;
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof(path) - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  return IsMeant(path);
}

bool IsThere(const char* path) {
  const int kept = errno;
  const bool there = access(path, F_OK) == 0;
  errno = kept;
  return there;
}

// A point at which the process may die. True: the call is to fail for want of room.
bool Fails(bool needs_room) {
  Settings& s = Read();
  if (s.count->fetch_add(1) + 1 == s.kill_at) {
    s.count->fetch_add(1L << 40);
    kill(getpid(), SIGKILL);
  }
  if (!needs_room || s.full[0] == '\0' || access(s.full, F_OK) != 0) return false;
  errno = ENOSPC;
  return true;
}

}  // namespace

#define FUSION_REAL(name) static const auto real = Next<decltype(&name)>(#name)

extern "C" {

ssize_t write(int fd, const void* data, size_t n) {
  FUSION_REAL(write);
  const int kept = errno;
  if (IsMeant(fd) && Fails(true)) return -1;
  errno = kept;
  return real(fd, data, n);
}
ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
  FUSION_REAL(pwrite);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, data, n, at);
}
ssize_t pwrite64(int fd, const void* data, size_t n, off64_t at) {
  FUSION_REAL(pwrite64);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, data, n, at);
}
ssize_t writev(int fd, const struct iovec* parts, int n) {
  FUSION_REAL(writev);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, parts, n);
}
ssize_t pwritev(int fd, const struct iovec* parts, int n, off_t at) {
  FUSION_REAL(pwritev);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, parts, n, at);
}
ssize_t pwritev64(int fd, const struct iovec* parts, int n, off64_t at) {
  FUSION_REAL(pwritev64);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, parts, n, at);
}
int fsync(int fd) {
  FUSION_REAL(fsync);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd);
}
int fdatasync(int fd) {
  FUSION_REAL(fdatasync);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd);
}
int sync_file_range(int fd, off64_t from, off64_t n, unsigned flags) {
  FUSION_REAL(sync_file_range);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, from, n, flags);
}
int ftruncate(int fd, off_t n) noexcept {
  FUSION_REAL(ftruncate);
  if (IsMeant(fd)) Fails(false);
  return real(fd, n);
}
int ftruncate64(int fd, off64_t n) noexcept {
  FUSION_REAL(ftruncate64);
  if (IsMeant(fd)) Fails(false);
  return real(fd, n);
}
int fallocate(int fd, int mode, off_t from, off_t n) {
  FUSION_REAL(fallocate);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, mode, from, n);
}
int fallocate64(int fd, int mode, off64_t from, off64_t n) {
  FUSION_REAL(fallocate64);
  if (IsMeant(fd) && Fails(true)) return -1;
  return real(fd, mode, from, n);
}
int posix_fallocate(int fd, off_t from, off_t n) {
  FUSION_REAL(posix_fallocate);
  if (IsMeant(fd) && Fails(true)) return ENOSPC;
  return real(fd, from, n);
}
int rename(const char* from, const char* to) noexcept {
  FUSION_REAL(rename);
  if (IsMeant(to) && Fails(true)) return -1;
  return real(from, to);
}
int unlink(const char* path) noexcept {
  FUSION_REAL(unlink);
  if (IsMeant(path)) Fails(false);
  return real(path);
}
int open(const char* path, int flags, ...) {
  FUSION_REAL(open);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && IsMeant(path) && Fails(!IsThere(path))) return -1;
  return real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  FUSION_REAL(open64);
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) != 0 && IsMeant(path) && Fails(!IsThere(path))) return -1;
  return real(path, flags, mode);
}

}  // extern "C"
