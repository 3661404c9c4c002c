#include "core/onnx/model_io.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <fstream>
#include <optional>

#include "core/base/files/file.h"
#include "core/base/files/unwritable.h"

namespace fusion {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::FileInputStream;
using google::protobuf::io::ZeroCopyInputStream;

constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;

// Name and wire type of a field of ModelProto; nullopt for a number it does not have.
struct ModelField {
  std::string_view name;
  int wire_type;
};
std::optional<ModelField> FindModelField(int number) {
  switch (number) {
    case 1:
      return ModelField{"ir_version", kVarint};
    case 2:
      return ModelField{"producer_name", kLengthDelimited};
    case 3:
      return ModelField{"producer_version", kLengthDelimited};
    case 4:
      return ModelField{"domain", kLengthDelimited};
    case 5:
      return ModelField{"model_version", kVarint};
    case 6:
      return ModelField{"doc_string", kLengthDelimited};
    case 7:
      return ModelField{"graph", kLengthDelimited};
    case 8:
      return ModelField{"opset_import", kLengthDelimited};
    case 14:
      return ModelField{"metadata_props", kLengthDelimited};
    case 20:
      return ModelField{"training_info", kLengthDelimited};
    case 25:
      return ModelField{"functions", kLengthDelimited};
    case 26:
      return ModelField{"configuration", kLengthDelimited};
    default:
      return std::nullopt;
  }
}

// Whether the message that begins here has more messages within messages than `levels`. False too
// for bytes that are no message.
// NOLINTNEXTLINE(misc-no-recursion): as deep as `levels`
bool IsDeeperThan(CodedInputStream* in, const Descriptor& type, int levels) {
  while (const uint32_t tag = in->ReadTag()) {
    const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool is_message =
        field != nullptr && field->message_type() != nullptr &&
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!is_message) {
      if (!WireFormatLite::SkipField(in, tag)) return false;
      continue;
    }
    int length = 0;
    if (levels == 0) return true;
    if (!in->ReadVarintSizeAsInt(&length)) return false;
    const CodedInputStream::Limit outer = in->PushLimit(length);
    if (IsDeeperThan(in, *field->message_type(), levels - 1)) return true;
    if (!in->ConsumedEntireMessage()) return false;
    in->PopLimit(outer);
  }
  return false;
}

absl::Status MalformedInside(ZeroCopyInputStream* stream, std::string_view what) {
  CodedInputStream in(stream);
  in.SetTotalBytesLimit(INT_MAX);
  const int most = CodedInputStream::GetDefaultRecursionLimit();
  if (IsDeeperThan(&in, *onnx::ModelProto::descriptor(), most)) {
    return InvalidArgument(what, ": nested deeper than ", most,
                           " messages; bodies of If, Loop and Scan take 3 each");
  }
  return InvalidArgument(what, ": malformed: a field inside the model is no valid protobuf");
}

// What is wrong with the outermost fields of bytes that protobuf refuses; OK if nothing is.
absl::Status CheckOutermost(ZeroCopyInputStream* stream, int64_t size, std::string_view what) {
  CodedInputStream in(stream);
  in.SetTotalBytesLimit(INT_MAX);
  for (;;) {
    int64_t at = in.CurrentPosition();
    if (at >= size) return absl::OkStatus();
    uint32_t tag = 0;
    if (!in.ReadVarint32(&tag)) return InvalidArgument(what, ": truncated at byte ", at);
    auto field = FindModelField(static_cast<int>(tag >> 3));
    if (!field || static_cast<int>(tag & 7) != field->wire_type) {
      return InvalidArgument(what, ": not an ONNX model: no field of a ModelProto at byte ", at);
    }
    uint64_t value = 0;
    if (!in.ReadVarint64(&value)) {
      return InvalidArgument(what, ": truncated in field ", field->name, " at byte ", at);
    }
    if (field->wire_type == kVarint) continue;
    int64_t left = size - in.CurrentPosition();
    if (value > static_cast<uint64_t>(left)) {
      return InvalidArgument(what, ": truncated: field ", field->name, " at byte ", at, " has ",
                             value, " bytes, the file ends after ", left);
    }
    if (!in.Skip(static_cast<int>(value))) {
      return InvalidArgument(what, ": truncated in field ", field->name, " at byte ", at);
    }
  }
}

absl::Status CheckSize(int64_t size, std::string_view what) {
  if (size == 0) return InvalidArgument(what, ": is empty, expected an ONNX model");
  if (size > INT_MAX) {
    return InvalidArgument(what, ": has ", size, " bytes; an ONNX file holds at most ", INT_MAX,
                           ", store the weights as external data");
  }
  return absl::OkStatus();
}

// Unknown fields parse as well: only a graph makes a model.
absl::Status CheckContent(const onnx::ModelProto& model, std::string_view what) {
  if (!model.has_graph()) return InvalidArgument(what, ": not an ONNX model: it has no graph");
  return absl::OkStatus();
}

bool Parse(ZeroCopyInputStream* stream, onnx::ModelProto* model) {
  CodedInputStream in(stream);
  in.SetTotalBytesLimit(INT_MAX);
  return model->ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

}  // namespace

absl::StatusOr<onnx::ModelProto> LoadModel(const std::string& path) {
  std::string what = StrCat("model file ", Quote(path));
  absl::StatusOr<RegularFile> file = OpenRegularFile(path);
  if (!file.ok()) {
    absl::Status why = Annotate(file.status(), what);
    return absl::IsInvalidArgument(why) ? why : NotFound(Message(why));
  }
  RETURN_IF_ERROR(CheckSize(file->bytes, what));
  onnx::ModelProto model;
  FileInputStream stream(file->fd.get(), 1 << 16);
  if (!Parse(&stream, &model)) {
    if (stream.GetErrno() != 0) {
      return FailedPrecondition(what, ": cannot be read: ", std::strerror(stream.GetErrno()));
    }
    const auto check = [&](const auto& of) -> absl::Status {
      if (::lseek(file->fd.get(), 0, SEEK_SET) != 0) {
        return FailedPrecondition(what, ": cannot be read: ", std::strerror(errno));
      }
      FileInputStream again(file->fd.get(), 1 << 16);
      return of(&again);
    };
    RETURN_IF_ERROR(check([&](auto* in) { return CheckOutermost(in, file->bytes, what); }));
    return check([&](auto* in) { return MalformedInside(in, what); });
  }
  RETURN_IF_ERROR(CheckContent(model, what));
  return model;
}

absl::StatusOr<onnx::ModelProto> ParseModel(std::string_view bytes, std::string_view what) {
  auto size = static_cast<int64_t>(bytes.size());
  RETURN_IF_ERROR(CheckSize(size, what));
  onnx::ModelProto model;
  ArrayInputStream stream(bytes.data(), static_cast<int>(size));
  if (!Parse(&stream, &model)) {
    ArrayInputStream again(bytes.data(), static_cast<int>(size));
    RETURN_IF_ERROR(CheckOutermost(&again, size, what));
    ArrayInputStream once_more(bytes.data(), static_cast<int>(size));
    return MalformedInside(&once_more, what);
  }
  RETURN_IF_ERROR(CheckContent(model, what));
  return model;
}

absl::Status SaveModel(const onnx::ModelProto& model, const std::string& path) {
  if (model.ByteSizeLong() > static_cast<size_t>(INT_MAX)) {
    return InvalidArgument("model file ", Quote(path), ": the model has ", model.ByteSizeLong(),
                           " bytes, an ONNX file holds at most ", INT_MAX);
  }
  if (absl::Status other = CheckReplacesFile(path); !other.ok()) {
    return Annotate(other, StrCat("model file ", Quote(path)));
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out || !model.SerializeToOstream(&out) || !out.flush()) {
    const int why = errno;
    return WithWriteError(
        FailedPrecondition("model file ", Quote(path), ": cannot be written: ", std::strerror(why)),
        why);
  }
  return absl::OkStatus();
}

std::string ModelDirectory(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace fusion
