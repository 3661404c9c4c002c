#include "client/fusionctl/input/npz.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <functional>
#include <memory>

#include "core/base/files/file.h"
#include "core/tensor/npy.h"

namespace fusion {
namespace {

constexpr size_t kNpzBlockBytes = size_t{1} << 20;
// Maximum number of arrays in a file.
constexpr size_t kMaxMembers = 100000;
constexpr std::string_view kSuffix = ".npz";
constexpr std::string_view kMemberSuffix = ".npy";

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

std::string_view ErrorOf(archive* from) {
  const char* text = archive_error_string(from);
  return text == nullptr ? "unknown error" : text;
}

// The rest of the current member.
ByteSource BytesOf(archive* from) {
  return {.read = [from](char* to, size_t most) -> absl::StatusOr<size_t> {
    const auto count = archive_read_data(from, to, most);
    if (count < 0) return InvalidArgument(ErrorOf(from));
    return static_cast<size_t>(count);
  }};
}

// Called with each member; `from` stands at its first byte.
using Visit =
    std::function<absl::Status(const std::string& name, int64_t file_bytes, archive* from)>;

// Maximum compression ratio of deflate.
constexpr int64_t kMostFromAByte = 1032;

// Checks that a file of this size can contain such an array. Its header may be forged.
absl::Status CheckHolds(int64_t file_bytes, DType dtype, const Dims& dims) {
  ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(dims, DTypeBytes(dtype)));
  const int64_t claimed = elements * DTypeBytes(dtype);
  if (claimed / kMostFromAByte <= file_bytes) return absl::OkStatus();
  return InvalidArgument("claims ", DTypeName(dtype), DimsToString(dims), ", ", claimed,
                         " bytes; a file of ", file_bytes, " bytes holds no more than ",
                         file_bytes * kMostFromAByte);
}

absl::Status VisitMembers(const RegularFile& file, const std::string& what, const Visit& visit) {
  Archive from(archive_read_new(), archive_read_free);
  if (from == nullptr) return ResourceExhausted(what, ": no memory");
  archive_read_support_format_zip(from.get());
  auto no_archive = [&] {
    return InvalidArgument(what, " is no ZIP archive: ", ErrorOf(from.get()));
  };
  if (archive_read_open_fd(from.get(), file.fd.get(), kNpzBlockBytes) != ARCHIVE_OK) {
    return no_archive();
  }
  for (size_t members = 0;; ++members) {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(from.get(), &entry);
    if (code == ARCHIVE_EOF) return absl::OkStatus();
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return no_archive();  // warns of encodings
    if (members >= kMaxMembers) {
      return InvalidArgument(what, " has more than ", kMaxMembers, " members");
    }
    const char* text = archive_entry_pathname_utf8(entry);
    if (text == nullptr) text = archive_entry_pathname(entry);
    std::string name = text == nullptr ? "" : text;
    absl::Status visited;
    if (name.ends_with(kMemberSuffix)) {
      visited = visit(name.substr(0, name.size() - kMemberSuffix.size()), file.bytes, from.get());
    } else {
      visited = InvalidArgument("is no .npy file");
    }
    if (!visited.ok()) return Annotate(visited, StrCat(what, ": member ", QuoteShort(name)));
  }
}

absl::Status VisitArrays(const std::string& path, const Visit& visit) {
  const std::string what = StrCat("file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), what);
  return VisitMembers(*file, what, visit);
}

}  // namespace

bool IsNpz(const std::string& path) {
  std::error_code ignored;
  return path.ends_with(kSuffix) && !std::filesystem::is_directory(path, ignored);
}

absl::StatusOr<std::vector<NamedTensor>> LoadNpz(const std::string& path,
                                                 const TensorCheck& check) {
  std::vector<NamedTensor> out;
  RETURN_IF_ERROR(
      VisitArrays(path, [&](const std::string& name, int64_t file_bytes, archive* from) {
        auto wanted = [&](DType dtype, const Dims& dims) -> absl::Status {
          RETURN_IF_ERROR(check(name, dtype, dims));
          return CheckHolds(file_bytes, dtype, dims);
        };
        absl::StatusOr<HostTensor> value = ReadNpy(BytesOf(from), wanted);
        if (value.ok()) out.push_back({name, *std::move(value)});
        return value.status();
      }));
  return out;
}

absl::StatusOr<std::vector<std::string>> NamesInNpz(const std::string& path) {
  std::vector<std::string> out;
  RETURN_IF_ERROR(VisitArrays(path, [&](const std::string& name, int64_t, archive*) {
    out.push_back(name);
    return absl::OkStatus();
  }));
  return out;
}

}  // namespace fusion
