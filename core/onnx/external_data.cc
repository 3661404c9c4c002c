#include "core/onnx/external_data.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/files/file.h"

namespace fusion {
namespace {

struct Location {
  std::string file;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

std::optional<int64_t> ParseByteCount(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

absl::StatusOr<Location> ParseLocation(const onnx::TensorProto& tensor, std::string_view what) {
  Location out;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      out.file = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      auto value = ParseByteCount(entry.value());
      if (!value) {
        return InvalidArgument(what, ": external data ", entry.key(), " is ", Quote(entry.value()),
                               ", expected a number of bytes");
      }
      if (entry.key() == "offset") {
        out.offset = *value;
      } else {
        out.length = *value;
      }
    }
  }
  if (out.file.empty()) return InvalidArgument(what, ": external data without a location");
  return out;
}

std::optional<std::string> RealPath(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return std::nullopt;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

// The absolute path of `file`, which must lie inside `directory`.
absl::StatusOr<std::string> Resolve(const std::string& file, const std::string& directory,
                                    std::string_view what) {
  auto outside = [&] {
    return InvalidArgument(what, ": external data file ", Quote(file),
                           " lies outside of the model's directory ", Quote(directory));
  };
  if (file.find('\0') != std::string::npos || file.front() == '/') return outside();
  for (std::string_view piece : StrSplit(file, '/')) {
    if (piece == "..") return outside();
  }
  auto root = RealPath(directory.empty() ? "." : directory);
  if (!root) {
    return NotFound(what, ": the model's directory ", Quote(directory),
                    " cannot be opened: ", std::strerror(errno));
  }
  auto path = RealPath(StrCat(*root, "/", file));
  if (!path) {
    return NotFound(what, ": external data file ", Quote(file), " in ", Quote(directory),
                    " cannot be opened: ", std::strerror(errno));
  }
  std::string prefix = *root == "/" ? *root : StrCat(*root, "/");
  if (path->compare(0, prefix.size(), prefix) != 0) return outside();
  return *path;
}

// Reads `left` bytes from `offset` on to `to`.
absl::Status ReadFully(int fd, int64_t offset, int64_t left, char* to, std::string_view where) {
  while (left > 0) {
    ssize_t n = ::pread(fd, to, static_cast<size_t>(left), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return FailedPrecondition(where, ": cannot be read at byte ", offset, ": ",
                                n == 0 ? "the file has become shorter" : std::strerror(errno));
    }
    to += n;
    offset += n;
    left -= n;
  }
  return absl::OkStatus();
}

absl::StatusOr<HostTensor> ReadAt(const RegularFile& file, const Location& location,
                                  const TensorHeader& header, std::string_view where) {
  const int64_t stored = header.stored_bytes;
  if (location.length && *location.length != stored) {
    return InvalidArgument(where, ": length is ", *location.length, " bytes, ",
                           DTypeName(header.dtype), DimsToString(header.dims), " needs ", stored);
  }
  if (location.offset > file.bytes || stored > file.bytes - location.offset) {
    return InvalidArgument(where, ": has ", file.bytes, " bytes, expected at least ", stored,
                           " from byte ", location.offset);
  }
  if (stored != header.bytes) {
    std::string packed(static_cast<size_t>(stored), '\0');
    RETURN_IF_ERROR(ReadFully(file.fd.get(), location.offset, stored, packed.data(), where));
    return HostTensor::FromPacked(header.dtype, header.dims, packed);
  }
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(header.dtype, header.dims));
  RETURN_IF_ERROR(ReadFully(file.fd.get(), location.offset, stored,
                            reinterpret_cast<char*>(out.bytes()), where));
  out.NormaliseBytes();
  return out;
}

}  // namespace

absl::StatusOr<HostTensor> ReadExternalTensor(const onnx::TensorProto& tensor,
                                              const std::string& directory, std::string_view what) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, what));
  ASSIGN_OR_RETURN(Location location, ParseLocation(tensor, what));
  if (location.file == kClientWeightLocation) {
    return FailedPrecondition(what, ": its bytes were left with the client that sent the model");
  }
  ASSIGN_OR_RETURN(std::string path, Resolve(location.file, directory, what));
  std::string where = StrCat(what, ": external data file ", Quote(location.file));
  absl::StatusOr<RegularFile> opened = OpenRegularFile(path, /*follow_links=*/false);
  if (!opened.ok()) {
    absl::Status why = Annotate(opened.status(), where);
    return absl::IsInvalidArgument(why) ? why : NotFound(Message(why));
  }
  return ReadAt(*opened, location, header, where);
}

absl::StatusOr<HostTensor> ReadTensor(const onnx::TensorProto& tensor, const std::string& directory,
                                      std::string_view what) {
  return IsExternal(tensor) ? ReadExternalTensor(tensor, directory, what)
                            : ReadInlineTensor(tensor, what);
}

void ReferToClient(onnx::TensorProto* tensor) {
  tensor->clear_raw_data();
  tensor->clear_float_data();
  tensor->clear_int32_data();
  tensor->clear_int64_data();
  tensor->clear_double_data();
  tensor->clear_uint64_data();
  tensor->clear_string_data();
  tensor->clear_external_data();
  tensor->clear_doc_string();
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* entry = tensor->add_external_data();
  entry->set_key("location");
  entry->set_value(std::string(kClientWeightLocation));
}

}  // namespace fusion
