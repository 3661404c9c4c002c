#include "server/admission/object_count.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace fusion {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Small numbers grow too: from one byte to eight, and twice that while an array grows. This many of
// them take as much memory as an object.
constexpr int64_t kNumbersPerObject = 8;

/// Walks a serialised message and all nested messages. Use it once.
class Walk {
 public:
  Walk(std::string_view bytes, int64_t limit)
      : in_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())),
        limit_(limit) {}

  /// False if the bytes are no message. Stops soon after the limit, with true.
  bool Message(const Descriptor& type) { return Fields(&type, /*group=*/0, /*depth=*/0); }
  bool too_deep() const { return too_deep_; }
  int64_t objects() const { return objects_ + numbers_ / kNumbersPerObject; }

 private:
  bool Full() const { return objects() > limit_; }

  // Up to the end of the message, or of the group with that number. `type`: null if unknown.
  bool Fields(const Descriptor* type, int group, int depth) {
    if (depth > kMaxMessageDepth) {
      too_deep_ = true;
      return false;
    }
    while (!Full()) {
      uint32_t tag = in_.ReadTag();
      if (tag == 0) return group == 0 && in_.ConsumedEntireMessage();
      int number = WireFormatLite::GetTagFieldNumber(tag);
      WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
      if (number == 0) return false;
      if (wire == WireFormatLite::WIRETYPE_END_GROUP) return number == group;
      const FieldDescriptor* field = type == nullptr ? nullptr : type->FindFieldByNumber(number);
      if (field != nullptr && !IsExpected(*field, wire)) field = nullptr;
      if (!Field(field, tag, depth)) return false;
    }
    return true;
  }

  // Whether a parser accepts this wire type for the field; otherwise the field is unknown to it.
  static bool IsExpected(const FieldDescriptor& field, WireFormatLite::WireType wire) {
    auto type = static_cast<WireFormatLite::FieldType>(field.type());
    return wire == WireFormatLite::WireTypeForFieldType(type) ||
           (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED && field.is_packable());
  }

  // `field`: null if unknown. Parsers keep unknown fields, each as an object.
  bool Field(const FieldDescriptor* field, uint32_t tag, int depth) {
    WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
    bool is_message = field != nullptr && field->message_type() != nullptr;
    if (wire == WireFormatLite::WIRETYPE_START_GROUP) {
      ++objects_;
      return Fields(is_message ? field->message_type() : nullptr,
                    WireFormatLite::GetTagFieldNumber(tag), depth + 1);
    }
    if (wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      // An unknown value of a proto2 enum becomes an unknown field.
      bool is_number = field != nullptr && field->type() != FieldDescriptor::TYPE_ENUM;
      ++(is_number ? numbers_ : objects_);
      return WireFormatLite::SkipField(&in_, tag);
    }
    uint32_t length = 0;
    if (!in_.ReadVarint32(&length)) return false;
    if (static_cast<int64_t>(length) > in_.BytesUntilLimit()) return false;
    if (field != nullptr && field->is_packable()) {
      // Fixed-size numbers do not grow.
      bool varints = WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(
                         field->type())) == WireFormatLite::WIRETYPE_VARINT;
      if (varints) numbers_ += length;
      return in_.Skip(static_cast<int>(length));
    }
    ++objects_;
    if (!is_message) return in_.Skip(static_cast<int>(length));
    CodedInputStream::Limit outer = in_.PushLimit(static_cast<int>(length));
    if (!Fields(field->message_type(), /*group=*/0, depth + 1)) return false;
    in_.PopLimit(outer);
    return true;
  }

  CodedInputStream in_;
  const int64_t limit_;
  int64_t objects_ = 0;
  int64_t numbers_ = 0;
  bool too_deep_ = false;
};

}  // namespace

int64_t CountObjects(const Descriptor& type, std::string_view bytes, int64_t limit) {
  Walk walk(bytes, limit);
  if (walk.Message(type)) return walk.objects();
  return walk.too_deep() ? kNestedTooDeep : kNoMessage;
}

}  // namespace fusion
