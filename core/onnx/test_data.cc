#include "core/onnx/test_data.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "core/base/files/file.h"
#include "core/base/files/unwritable.h"
#include "core/onnx/tensor_proto.h"
#include "core/tensor/npy.h"

namespace fusion {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::FileInputStream;

constexpr std::string_view kPbSuffix = ".pb";
constexpr std::string_view kNpySuffix = ".npy";
constexpr std::string_view kInputPrefix = "input_";
constexpr std::string_view kOutputPrefix = "output_";

bool FileExists(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

// Of a file with a tensor of few elements: name and documentation.
constexpr int64_t kMaxProtoHeadBytes = int64_t{1} << 20;
// Of an element: a negative number of int32_data with a tag of its own.
constexpr int64_t kMaxElementBytes = 11;

// The extents of a TensorProto, packed or not.
bool ReadDims(CodedInputStream* in, bool packed, onnx::TensorProto* out) {
  uint64_t dim = 0;
  if (!packed) {
    if (!in->ReadVarint64(&dim)) return false;
    out->add_dims(static_cast<int64_t>(dim));
    return true;
  }
  int length = 0;
  if (!in->ReadVarintSizeAsInt(&length)) return false;
  const CodedInputStream::Limit limit = in->PushLimit(length);
  while (in->BytesUntilLimit() > 0) {
    if (out->dims_size() > kMaxTensorRank || !in->ReadVarint64(&dim)) return false;
    out->add_dims(static_cast<int64_t>(dim));
  }
  in->PopLimit(limit);
  return true;
}

// Name, type and extents; what is longer is skipped, not read.
bool ReadProtoHead(CodedInputStream* in, onnx::TensorProto* out) {
  for (;;) {
    const uint32_t tag = in->ReadTag();
    if (tag == 0) return in->ConsumedEntireMessage() && out->has_data_type();
    if (out->dims_size() > kMaxTensorRank) return true;  // what comes next says so
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool is_long =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    bool good = true;
    uint32_t number = 0;
    if (field == onnx::TensorProto::kDimsFieldNumber) {
      good = ReadDims(in, is_long, out);
    } else if (field == onnx::TensorProto::kDataTypeFieldNumber && !is_long) {
      good = in->ReadVarint32(&number);
      out->set_data_type(static_cast<int32_t>(number));
    } else if (field == onnx::TensorProto::kNameFieldNumber && is_long) {
      good = in->ReadVarint32(&number) && number <= kMaxProtoHeadBytes &&
             in->ReadString(out->mutable_name(), static_cast<int>(number));
    } else {
      good = WireFormatLite::SkipField(in, tag);
    }
    if (!good) return false;
  }
}

absl::StatusOr<TensorHeader> ReadProtoType(const RegularFile& file, const std::string& what,
                                           std::string* name) {
  onnx::TensorProto head;
  FileInputStream stream(file.fd.get());
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  if (!ReadProtoHead(&in, &head)) return InvalidArgument(what, ": is no serialised TensorProto");
  *name = head.name();
  return ReadTensorHeader(head, what);
}

absl::StatusOr<NamedTensor> LoadProto(const RegularFile& file, const std::string& what,
                                      const TensorCheck& check) {
  std::string name;
  ASSIGN_OR_RETURN(const TensorHeader header, ReadProtoType(file, what, &name));
  if (check != nullptr) RETURN_IF_ERROR(check(name, header.dtype, header.dims));
  const int64_t elements = header.bytes / DTypeBytes(header.dtype);
  if (file.bytes - kMaxProtoHeadBytes > elements * kMaxElementBytes) {
    return InvalidArgument(what, ": has ", file.bytes, " bytes, more than a tensor ",
                           DTypeName(header.dtype), DimsToString(header.dims), " takes");
  }
  if (::lseek(file.fd.get(), 0, SEEK_SET) != 0) {
    return FailedPrecondition(what, ": cannot be read: ", std::strerror(errno));
  }
  onnx::TensorProto proto;
  if (!proto.ParseFromFileDescriptor(file.fd.get())) {
    return InvalidArgument(what, ": is no serialised TensorProto");
  }
  ASSIGN_OR_RETURN(HostTensor value, ReadInlineTensor(proto, what));
  return NamedTensor{std::move(name), std::move(value)};
}

// "input_3.pb" -> 3 with the prefix "input_"; nullopt for other names.
std::optional<size_t> NumberOf(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  size_t k = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), k);
  const std::string_view suffix(end, static_cast<size_t>(name.data() + name.size() - end));
  if (error != std::errc() || (suffix != kPbSuffix && suffix != kNpySuffix)) return std::nullopt;
  return k;
}

// The files of one kind, by number: none may be missing between others.
absl::StatusOr<std::vector<std::string>> InOrder(const std::multimap<size_t, std::string>& found,
                                                 std::string_view prefix,
                                                 const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& [k, name] : found) {
    if (k < out.size()) {
      return InvalidArgument(Quote(directory), " has both ", prefix, k, kPbSuffix, " and ", prefix,
                             k, kNpySuffix);
    }
    if (k > out.size()) {
      return InvalidArgument(Quote(directory), " has ", name, " but no ", prefix, out.size(),
                             kPbSuffix);
    }
    out.push_back(StrCat(directory, "/", name));
  }
  return out;
}

absl::Status LoadAll(const std::vector<std::string>& paths, bool is_output, const DataCheck& check,
                     std::vector<NamedTensor>* out) {
  std::map<std::string, std::string> path_of;  // by name of the tensor
  for (size_t k = 0; k < paths.size(); ++k) {
    const auto one = [&](const std::string& name, DType dtype, const Dims& dims) -> absl::Status {
      const auto [at, fresh] = path_of.emplace(name, paths[k]);
      if (!fresh && !name.empty()) {
        return InvalidArgument("tensor files ", Quote(at->second), " and ", Quote(paths[k]),
                               " both hold ", QuoteShort(name));
      }
      return check == nullptr ? absl::OkStatus() : check(is_output, k, {name, dtype, dims});
    };
    ASSIGN_OR_RETURN(NamedTensor tensor, LoadTensorFile(paths[k], one));
    out->push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status SaveAll(const std::string& prefix, const std::vector<NamedTensor>& tensors,
                     std::string_view suffix) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    RETURN_IF_ERROR(SaveTensorFile(StrCat(prefix, k, suffix), tensors[k]));
    // Of an earlier call; it would be read in place of this one.
    const std::string_view other = suffix == kNpySuffix ? kPbSuffix : kNpySuffix;
    std::remove(StrCat(prefix, k, other).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NamedTensor> LoadTensorFile(const std::string& path, const TensorCheck& check) {
  const std::string what = StrCat("tensor file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), what);
  if (!path.ends_with(kNpySuffix)) return LoadProto(*file, what, check);
  absl::StatusOr<HostTensor> value = ReadNpy(BytesOf(*file), [&](DType dtype, const Dims& dims) {
    return check == nullptr ? absl::OkStatus() : check("", dtype, dims);
  });
  if (!value.ok()) return Annotate(value.status(), what);
  return NamedTensor{"", *std::move(value)};
}

absl::StatusOr<NamedType> ReadTensorType(const std::string& path) {
  const std::string what = StrCat("tensor file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) return Annotate(file.status(), what);
  NamedType out;
  if (!path.ends_with(kNpySuffix)) {
    ASSIGN_OR_RETURN(TensorHeader header, ReadProtoType(*file, what, &out.name));
    out.dtype = header.dtype;
    out.dims = std::move(header.dims);
    return out;
  }
  // No array is read once its type is known.
  bool known = false;
  absl::StatusOr<HostTensor> none = ReadNpy(BytesOf(*file), [&](DType dtype, const Dims& dims) {
    out.dtype = dtype;
    out.dims = dims;
    known = true;
    return absl::CancelledError();
  });
  if (!known) return Annotate(none.status(), what);
  return out;
}

absl::Status SaveTensorFile(const std::string& path, const NamedTensor& tensor) {
  if (absl::Status other = CheckReplacesFile(path); !other.ok()) {
    return Annotate(other, StrCat("tensor file ", Quote(path)));
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  bool ok = out && (path.ends_with(kNpySuffix)
                        ? static_cast<bool>(out << ToNpy(tensor.value))
                        : MakeTensorProto(tensor.value, tensor.name).SerializeToOstream(&out));
  if (!ok || !out.flush()) {
    const int why = errno;
    return WithWriteError(FailedPrecondition("tensor file ", Quote(path),
                                             ": cannot be written: ", std::strerror(why)),
                          why);
  }
  return absl::OkStatus();
}

absl::StatusOr<TestDataFiles> FindTestData(const std::string& directory) {
  std::multimap<size_t, std::string> inputs, outputs;
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    if (!name.ends_with(kPbSuffix) && !name.ends_with(kNpySuffix)) continue;
    if (const auto input = NumberOf(name, kInputPrefix)) {
      inputs.emplace(*input, name);
    } else if (const auto output = NumberOf(name, kOutputPrefix)) {
      outputs.emplace(*output, name);
    } else {
      return InvalidArgument(Quote(directory), " has ", QuoteShort(name), ", which is no ",
                             kInputPrefix, "NUMBER or ", kOutputPrefix, "NUMBER");
    }
  }
  if (error) return NotFound(Quote(directory), ": cannot be read: ", error.message());
  TestDataFiles out;
  ASSIGN_OR_RETURN(out.inputs, InOrder(inputs, kInputPrefix, directory));
  ASSIGN_OR_RETURN(out.outputs, InOrder(outputs, kOutputPrefix, directory));
  return out;
}

absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory, const DataCheck& check) {
  ASSIGN_OR_RETURN(const TestDataFiles files, FindTestData(directory));
  TestDataSet out;
  RETURN_IF_ERROR(LoadAll(files.inputs, /*is_output=*/false, check, &out.inputs));
  RETURN_IF_ERROR(LoadAll(files.outputs, /*is_output=*/true, check, &out.outputs));
  return out;
}

absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data,
                             std::string_view suffix) {
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    const int why = errno;
    return WithWriteError(FailedPrecondition("directory ", Quote(directory),
                                             ": cannot be created: ", std::strerror(why)),
                          why);
  }
  RETURN_IF_ERROR(SaveAll(StrCat(directory, "/", kInputPrefix), data.inputs, suffix));
  return SaveAll(StrCat(directory, "/", kOutputPrefix), data.outputs, suffix);
}

std::vector<std::string> FindTestDataSets(const std::string& case_directory) {
  std::vector<std::string> out;
  for (int n = 0;; ++n) {
    std::string path = StrCat(case_directory, "/test_data_set_", n);
    if (!FileExists(path)) return out;
    out.push_back(std::move(path));
  }
}

}  // namespace fusion
