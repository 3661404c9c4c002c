#include "core/op/attr.h"

#include "core/op/repeat.h"

namespace fusion {
namespace {

constexpr int64_t kMaxTextElements = int64_t{1} << 24;

std::string ValueToText(const AttrValue& value) {
  struct Printer {
    std::string operator()(int64_t v) const { return StrCat(v); }
    std::string operator()(double v) const { return StrCat("f(", HexDouble(v), ")"); }
    std::string operator()(const std::string& v) const { return Quote(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return StrCat("[", StrJoin(v, ", "), "]");
    }
    std::string operator()(const std::vector<double>& v) const {
      return StrCat("f[", StrJoin(v, ", ", HexDouble), "]");
    }
    std::string operator()(const std::shared_ptr<const HostTensor>& v) const {
      return StrCat("tensor ", TensorToText(*v));
    }
    std::string operator()(const std::shared_ptr<const Repeat>& v) const { return ToString(*v); }
  };
  return std::visit(Printer{}, value);
}

absl::StatusOr<AttrValue> ParseValue(Lexer& in) {
  if (in.Peek("\"")) {
    ASSIGN_OR_RETURN(std::string text, in.QuotedString());
    return AttrValue(std::move(text));
  }
  if (in.Accept("tensor")) {
    ASSIGN_OR_RETURN(HostTensor tensor, ParseTensorText(in));
    return AttrValue(std::make_shared<const HostTensor>(std::move(tensor)));
  }
  if (in.Peek("repeat")) {
    ASSIGN_OR_RETURN(Repeat repeat, ParseRepeat(in));
    return AttrValue(std::make_shared<const Repeat>(std::move(repeat)));
  }
  if (in.Accept("f")) {
    if (in.Accept("(")) {
      ASSIGN_OR_RETURN(double v, in.Number());
      RETURN_IF_ERROR(in.Expect(")"));
      return AttrValue(v);
    }
    RETURN_IF_ERROR(in.Expect("["));
    std::vector<double> values;
    while (!in.Accept("]")) {
      if (!values.empty()) RETURN_IF_ERROR(in.Expect(","));
      ASSIGN_OR_RETURN(double v, in.Number());
      values.push_back(v);
    }
    return AttrValue(std::move(values));
  }
  if (in.Accept("[")) {
    std::vector<int64_t> values;
    while (!in.Accept("]")) {
      if (!values.empty()) RETURN_IF_ERROR(in.Expect(","));
      ASSIGN_OR_RETURN(int64_t v, in.Integer());
      values.push_back(v);
    }
    return AttrValue(std::move(values));
  }
  ASSIGN_OR_RETURN(int64_t v, in.Integer());
  return AttrValue(v);
}

bool SameValue(const AttrValue& a, const AttrValue& b) {
  const auto* ta = std::get_if<std::shared_ptr<const HostTensor>>(&a);
  const auto* tb = std::get_if<std::shared_ptr<const HostTensor>>(&b);
  if (ta != nullptr && tb != nullptr) return **ta == **tb;
  const auto* ra = std::get_if<std::shared_ptr<const Repeat>>(&a);
  const auto* rb = std::get_if<std::shared_ptr<const Repeat>>(&b);
  if (ra != nullptr && rb != nullptr) return ToString(**ra) == ToString(**rb);
  return a == b;
}

}  // namespace

bool AttrMap::operator==(const AttrMap& other) const {
  if (values_.size() != other.values_.size()) return false;
  auto it = other.values_.begin();
  for (const auto& [name, value] : values_) {
    if (name != it->first || !SameValue(value, it->second)) return false;
    ++it;
  }
  return true;
}

std::string AttrMap::ToString() const {
  if (values_.empty()) return "";
  return StrCat(
      "{",
      StrJoin(values_, ", ",
              [](const auto& kv) { return StrCat(kv.first, "=", ValueToText(kv.second)); }),
      "}");
}

absl::StatusOr<AttrMap> AttrMap::Parse(Lexer& in) {
  AttrMap map;
  if (!in.Accept("{")) return map;
  do {
    ASSIGN_OR_RETURN(std::string name, in.Identifier());
    RETURN_IF_ERROR(in.Expect("="));
    ASSIGN_OR_RETURN(AttrValue value, ParseValue(in));
    map.Set(name, std::move(value));
  } while (in.Accept(","));
  RETURN_IF_ERROR(in.Expect("}"));
  return map;
}

std::string TensorToText(const HostTensor& tensor) {
  std::string out = StrCat(DTypeName(tensor.dtype()), DimsToString(tensor.dims()), " {");
  bool real = IsFloat(tensor.dtype());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (i > 0) out += ", ";
    out += real ? HexDouble(tensor.GetDouble(i)) : StrCat(tensor.GetInt(i));
  }
  out += "}";
  return out;
}

absl::StatusOr<HostTensor> ParseTensorText(Lexer& in) {
  ASSIGN_OR_RETURN(std::string name, in.Identifier());
  auto dtype = ParseDType(name);
  if (!dtype) return in.Error("an element type before this");
  ASSIGN_OR_RETURN(std::string_view shape_text, in.Until('{'));
  ASSIGN_OR_RETURN(Shape shape, Shape::Parse(shape_text));
  if (!shape.is_static()) return in.Error("a static shape before this");
  Dims dims = shape.ToDims();
  ASSIGN_OR_RETURN(int64_t elements, CheckedNumElements(dims, DTypeBytes(*dtype)));
  if (elements > kMaxTextElements) return in.Error("a tensor of at most 16M elements before this");
  RETURN_IF_ERROR(in.Expect("{"));
  HostTensor tensor(*dtype, dims);
  for (int64_t i = 0; i < elements; ++i) {
    if (i > 0) RETURN_IF_ERROR(in.Expect(","));
    if (IsFloat(*dtype)) {
      ASSIGN_OR_RETURN(double v, in.Number());
      tensor.SetDouble(i, v);
    } else {
      ASSIGN_OR_RETURN(int64_t v, in.Integer());
      tensor.SetInt(i, v);
    }
  }
  RETURN_IF_ERROR(in.Expect("}"));
  return tensor;
}

}  // namespace fusion
