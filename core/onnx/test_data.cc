#include "core/onnx/test_data.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/onnx/tensor_proto.h"
#include "core/tensor/npy.h"

namespace fusion {
namespace {

constexpr std::string_view kNpySuffix = ".npy";

bool FileExists(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0;
}

absl::Status LoadAll(const std::string& prefix, std::vector<NamedTensor>* out) {
  for (int k = 0;; ++k) {
    std::string path = StrCat(prefix, k, ".pb");
    if (!FileExists(path)) path = StrCat(prefix, k, kNpySuffix);
    if (!FileExists(path)) return absl::OkStatus();
    ASSIGN_OR_RETURN(NamedTensor tensor, LoadTensorFile(path));
    out->push_back(std::move(tensor));
  }
}

absl::Status SaveAll(const std::string& prefix, const std::vector<NamedTensor>& tensors,
                     std::string_view suffix) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    RETURN_IF_ERROR(SaveTensorFile(StrCat(prefix, k, suffix), tensors[k]));
    // Of an earlier call; it would be read in place of this one.
    const std::string_view other = suffix == kNpySuffix ? ".pb" : kNpySuffix;
    std::remove(StrCat(prefix, k, other).c_str());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NamedTensor> LoadTensorFile(const std::string& path) {
  std::string what = StrCat("tensor file ", Quote(path));
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound(what, ": cannot be opened: ", std::strerror(errno));
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (path.ends_with(kNpySuffix)) {
    absl::StatusOr<HostTensor> value = ParseNpy(bytes);
    if (!value.ok()) return Annotate(value.status(), what);
    return NamedTensor{"", *std::move(value)};
  }
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument(what, ": is no serialised TensorProto");
  ASSIGN_OR_RETURN(HostTensor value, ReadInlineTensor(proto, what));
  return NamedTensor{proto.name(), std::move(value)};
}

absl::Status SaveTensorFile(const std::string& path, const NamedTensor& tensor) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  bool ok = out && (path.ends_with(kNpySuffix)
                        ? static_cast<bool>(out << ToNpy(tensor.value))
                        : MakeTensorProto(tensor.value, tensor.name).SerializeToOstream(&out));
  if (!ok || !out.flush()) {
    return FailedPrecondition("tensor file ", Quote(path),
                              ": cannot be written: ", std::strerror(errno));
  }
  return absl::OkStatus();
}

absl::StatusOr<TestDataSet> LoadTestDataSet(const std::string& directory) {
  TestDataSet out;
  RETURN_IF_ERROR(LoadAll(StrCat(directory, "/input_"), &out.inputs));
  RETURN_IF_ERROR(LoadAll(StrCat(directory, "/output_"), &out.outputs));
  return out;
}

absl::Status SaveTestDataSet(const std::string& directory, const TestDataSet& data,
                             std::string_view suffix) {
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) {
    return FailedPrecondition("directory ", Quote(directory),
                              ": cannot be created: ", std::strerror(errno));
  }
  RETURN_IF_ERROR(SaveAll(StrCat(directory, "/input_"), data.inputs, suffix));
  return SaveAll(StrCat(directory, "/output_"), data.outputs, suffix);
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
