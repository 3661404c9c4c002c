#include "tests/fuzz/proto_mutator.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

namespace fusion {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

/// One place of a message tree: a field of a message in it.
struct Place {
  Message* message;
  const FieldDescriptor* field;
};

class Mutator {
 public:
  Mutator(uint32_t seed, size_t max_bytes) : random_(seed), max_bytes_(max_bytes) {}

  void Run(Message* root) {
    for (int left = 1 + Below(4); left > 0; --left) {
      places_.clear();
      strings_.clear();
      Collect(root, 0);
      if (places_.empty()) return;
      may_grow_ = root->ByteSizeLong() < max_bytes_;
      const Place& place = places_[static_cast<size_t>(Below(static_cast<int>(places_.size())))];
      if (place.field->is_repeated()) {
        MutateList(place);
      } else {
        MutateSingle(place);
      }
    }
  }

 private:
  int Below(int n) { return n <= 1 ? 0 : static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void Collect(Message* message, int depth) {
    constexpr int kDepth = 12;
    const auto* type = message->GetDescriptor();
    const Reflection* r = message->GetReflection();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      int size = field->is_repeated() ? r->FieldSize(*message, field)
                                      : (r->HasField(*message, field) ? 1 : 0);
      // Absent fields are worth a try now and then.
      if (size > 0 || Below(6) == 0) places_.push_back({message, field});
      for (int k = 0; k < size; ++k) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth < kDepth) {
          Collect(field->is_repeated() ? r->MutableRepeatedMessage(message, field, k)
                                       : r->MutableMessage(message, field),
                  depth + 1);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          strings_.push_back(field->is_repeated() ? r->GetRepeatedString(*message, field, k)
                                                  : r->GetString(*message, field));
        }
      }
    }
  }

  int64_t Number() {
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
    const std::vector<int64_t> interesting = {0,
                                              1,
                                              2,
                                              3,
                                              4,
                                              7,
                                              8,
                                              16,
                                              64,
                                              255,
                                              1024,
                                              1 << 20,
                                              -1,
                                              -2,
                                              -3,
                                              kMax,
                                              kMin,
                                              kMax - 1,
                                              kMin + 1,
                                              int64_t{1} << 40,
                                              int64_t{1} << 62,
                                              -(int64_t{1} << 62)};
    if (Below(3) == 0) return Below(40) - 8;
    return interesting[static_cast<size_t>(Below(static_cast<int>(interesting.size())))];
  }

  std::string Text() {
    if (!strings_.empty() && Below(8) != 0) {
      return strings_[static_cast<size_t>(Below(static_cast<int>(strings_.size())))];
    }
    std::string out;
    for (int n = Below(12); n > 0; --n) out += static_cast<char>(random_());
    return out;
  }

  double Real() {
    const std::vector<double> interesting = {0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.5,
                                             1e-12,
                                             1e30,
                                             -1e30,
                                             std::numeric_limits<double>::infinity(),
                                             std::numeric_limits<double>::quiet_NaN()};
    return interesting[static_cast<size_t>(Below(static_cast<int>(interesting.size())))];
  }

  void MutateSingle(const Place& p) {
    const Reflection* r = p.message->GetReflection();
    if (Below(8) == 0) {
      r->ClearField(p.message, p.field);
      return;
    }
    switch (p.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        r->SetInt32(p.message, p.field, static_cast<int32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        r->SetInt64(p.message, p.field, Number());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        r->SetUInt32(p.message, p.field, static_cast<uint32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        r->SetUInt64(p.message, p.field, static_cast<uint64_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        r->SetFloat(p.message, p.field, static_cast<float>(Real()));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        r->SetDouble(p.message, p.field, Real());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        r->SetBool(p.message, p.field, Below(2) == 0);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        r->SetEnum(p.message, p.field,
                   p.field->enum_type()->value(Below(p.field->enum_type()->value_count())));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        r->SetString(p.message, p.field, Text());
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (may_grow_) r->MutableMessage(p.message, p.field);
        break;
    }
  }

  void MutateList(const Place& p) {
    const Reflection* r = p.message->GetReflection();
    int size = r->FieldSize(*p.message, p.field);
    int what = Below(4);
    if (size > 0 && what == 0) {
      r->SwapElements(p.message, p.field, Below(size), size - 1);
      r->RemoveLast(p.message, p.field);
    } else if (size > 1 && what == 1) {
      r->SwapElements(p.message, p.field, Below(size), Below(size));
    } else if (size > 0 && (what == 2 || !may_grow_)) {
      SetElement(p, Below(size));
    } else if (may_grow_) {
      AddElement(p, size);
    }
  }

  void SetElement(const Place& p, int i) {
    const Reflection* r = p.message->GetReflection();
    switch (p.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        r->SetRepeatedInt32(p.message, p.field, i, static_cast<int32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        r->SetRepeatedInt64(p.message, p.field, i, Number());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        r->SetRepeatedUInt32(p.message, p.field, i, static_cast<uint32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        r->SetRepeatedUInt64(p.message, p.field, i, static_cast<uint64_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        r->SetRepeatedFloat(p.message, p.field, i, static_cast<float>(Real()));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        r->SetRepeatedDouble(p.message, p.field, i, Real());
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        r->SetRepeatedString(p.message, p.field, i, Text());
        break;
      default:
        break;
    }
  }

  void AddElement(const Place& p, int size) {
    const Reflection* r = p.message->GetReflection();
    switch (p.field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        r->AddInt32(p.message, p.field, static_cast<int32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        r->AddInt64(p.message, p.field, Number());
        break;
      case FieldDescriptor::CPPTYPE_UINT32:
        r->AddUInt32(p.message, p.field, static_cast<uint32_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        r->AddUInt64(p.message, p.field, static_cast<uint64_t>(Number()));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        r->AddFloat(p.message, p.field, static_cast<float>(Real()));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        r->AddDouble(p.message, p.field, Real());
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        r->AddString(p.message, p.field, Text());
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        // A copy of a neighbour is closer to something meaningful than an empty message.
        Message* added = r->AddMessage(p.message, p.field);
        if (size > 0) added->CopyFrom(r->GetRepeatedMessage(*p.message, p.field, Below(size)));
        break;
      }
      default:
        break;
    }
  }

  std::mt19937 random_;
  size_t max_bytes_;
  bool may_grow_ = true;
  std::vector<Place> places_;
  std::vector<std::string> strings_;
};

}  // namespace

void MutateMessage(google::protobuf::Message* message, uint32_t seed, size_t max_bytes) {
  Mutator(seed, max_bytes).Run(message);
}

}  // namespace fusion
