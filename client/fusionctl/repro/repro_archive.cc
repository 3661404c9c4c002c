#include "client/fusionctl/repro/repro_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <cstring>
#include <memory>

#include "core/base/files/file.h"
#include "core/base/files/unwritable.h"

namespace fusion {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 18;
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr size_t kMostFiles = 100000;

using Writer = std::unique_ptr<archive, int (*)(archive*)>;
using Reader = std::unique_ptr<archive, int (*)(archive*)>;
using ArchiveEntry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;

absl::Status WriteError(archive* to) {
  const int why = archive_errno(to);
  return WithWriteError(InvalidArgument(archive_error_string(to), ": ", std::strerror(why)), why);
}

absl::Status Write(archive* to, const ReproFiles& files) {
  for (const auto& [name, bytes] : files) {
    ArchiveEntry entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname_utf8(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    const bool written =
        archive_write_header(to, entry.get()) == ARCHIVE_OK &&
        archive_write_data(to, bytes.data(), bytes.size()) == static_cast<la_ssize_t>(bytes.size());
    if (!written) return WriteError(to);
  }
  if (archive_write_close(to) != ARCHIVE_OK) return WriteError(to);
  return absl::OkStatus();
}

// Reads the rest of the current member; `have` bytes were read before it.
absl::StatusOr<std::string> ReadMember(archive* from, size_t have) {
  std::string bytes;
  for (;;) {
    const size_t at = bytes.size();
    if (have + at > kMostBytes) return InvalidArgument("more than ", kMostBytes, " bytes");
    bytes.resize(at + kBlockBytes);
    const auto count = archive_read_data(from, bytes.data() + at, kBlockBytes);
    if (count < 0) return InvalidArgument(archive_error_string(from));
    bytes.resize(at + static_cast<size_t>(count));
    if (count == 0) return bytes;
  }
}

}  // namespace

absl::Status WriteReproArchive(const std::string& path, const ReproFiles& files) {
  Writer to(archive_write_new(), archive_write_free);
  if (to == nullptr) return ResourceExhausted("no memory for an archive");
  archive_write_set_format_ustar(to.get());
  archive_write_add_filter_gzip(to.get());
  // No time in the header, so that equal files give equal bytes.
  archive_write_set_filter_option(to.get(), "gzip", "timestamp", nullptr);
  if (archive_write_open_filename(to.get(), path.c_str()) != ARCHIVE_OK) {
    return Annotate(WriteError(to.get()), StrCat("file ", Quote(path)));
  }
  return Annotate(Write(to.get(), files), StrCat("file ", Quote(path)));
}

absl::StatusOr<ReproFiles> ReadReproArchive(const std::string& path) {
  const std::string what = StrCat("file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), what);
  Reader from(archive_read_new(), archive_read_free);
  if (from == nullptr) return ResourceExhausted(what, ": no memory");
  archive_read_support_format_tar(from.get());
  archive_read_support_filter_gzip(from.get());
  if (archive_read_open_fd(from.get(), file->fd.get(), kBlockBytes) != ARCHIVE_OK) {
    return InvalidArgument(what,
                           " is no archive of fusionctl repro: ", archive_error_string(from.get()));
  }
  ReproFiles files;
  size_t bytes = 0;
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(from.get(), &entry);
    if (code == ARCHIVE_EOF) return files;
    if (code != ARCHIVE_OK) {
      return InvalidArgument(
          what, " is no archive of fusionctl repro: ", archive_error_string(from.get()));
    }
    const char* name = archive_entry_pathname_utf8(entry);
    if (name == nullptr || files.size() >= kMostFiles) {
      return InvalidArgument(what, ": more than ", kMostFiles, " files, or one without a name");
    }
    const std::string key = name;
    absl::StatusOr<std::string> member = ReadMember(from.get(), bytes);
    if (!member.ok()) {
      return Annotate(member.status(), StrCat(what, ": member ", QuoteShort(key)));
    }
    bytes += member->size();
    files[key] = *std::move(member);
  }
}

}  // namespace fusion
