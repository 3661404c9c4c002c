#include "client/fusionctl/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <memory>

#include "core/tensor/npy.h"

namespace fusion {
namespace {

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr int64_t kMaxHeaderBytes = int64_t{1} << 16;
constexpr std::string_view kSuffix = ".npy";

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

// What is left of the current member.
absl::StatusOr<std::string> ReadMember(archive* from) {
  std::string bytes;
  for (;;) {
    const size_t have = bytes.size();
    if (static_cast<int64_t>(have) > kMaxTensorBytes + kMaxHeaderBytes) {
      return ResourceExhausted("more than ", kMaxTensorBytes, " bytes");
    }
    bytes.resize(have + kBlockBytes);
    const auto count = archive_read_data(from, bytes.data() + have, kBlockBytes);
    if (count < 0) return InvalidArgument(archive_error_string(from));
    bytes.resize(have + static_cast<size_t>(count));
    if (count == 0) return bytes;
  }
}

absl::StatusOr<NamedTensor> ReadArray(archive* from, std::string name) {
  if (!name.ends_with(kSuffix)) return InvalidArgument("is no .npy file");
  name.resize(name.size() - kSuffix.size());
  ASSIGN_OR_RETURN(std::string bytes, ReadMember(from));
  ASSIGN_OR_RETURN(HostTensor value, ParseNpy(bytes));
  return NamedTensor{std::move(name), std::move(value)};
}

}  // namespace

absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path) {
  const std::string what = StrCat("file ", Quote(path));
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return NotFound(what, ": no such file");
  Archive from(archive_read_new(), archive_read_free);
  if (from == nullptr) return ResourceExhausted(what, ": no memory");
  archive_read_support_format_zip(from.get());
  if (archive_read_open_filename(from.get(), path.c_str(), kBlockBytes) != ARCHIVE_OK) {
    return InvalidArgument(what, " is no ZIP archive: ", archive_error_string(from.get()));
  }
  std::vector<NamedTensor> out;
  for (;;) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(from.get(), &entry);
    if (code == ARCHIVE_EOF) return out;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {  // of names in other encodings
      return InvalidArgument(what, " is no ZIP archive: ", archive_error_string(from.get()));
    }
    const char* name = archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = archive_entry_pathname(entry);
    auto array = ReadArray(from.get(), name == nullptr ? "" : name);
    if (!array.ok()) {
      return Annotate(array.status(),
                      StrCat(what, ": member ", QuoteShort(name == nullptr ? "" : name)));
    }
    out.push_back(*std::move(array));
  }
}

}  // namespace fusion
