#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/parse/lexer.h"
#include "core/tensor/host_tensor.h"

namespace fusion {

struct Repeat;

/// Value of one attribute. Tensors and bodies are shared and immutable; the pointers are not null.
using AttrValue =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::shared_ptr<const HostTensor>, std::shared_ptr<const Repeat>>;

/// Attributes of a node, sorted by name so that texts and cache keys are deterministic. A value
/// type; not thread-safe while it is modified.
class AttrMap {
 public:
  AttrMap() = default;
  AttrMap(std::initializer_list<std::pair<const std::string, AttrValue>> init) : values_(init) {}

  bool Has(std::string_view name) const { return values_.find(std::string(name)) != values_.end(); }
  void Set(std::string_view name, AttrValue value) {
    values_.insert_or_assign(std::string(name), std::move(value));
  }
  void Erase(std::string_view name) { values_.erase(std::string(name)); }

  /// The value if it is present and of type T, else nullptr. The pointer is valid until the map
  /// changes.
  template <typename T>
  const T* Find(std::string_view name) const {
    auto it = values_.find(std::string(name));
    return it == values_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  /// The value, or `fallback` if the attribute is absent or of another type.
  int64_t Int(std::string_view name, int64_t fallback) const {
    const auto* v = Find<int64_t>(name);
    return v != nullptr ? *v : fallback;
  }
  double Float(std::string_view name, double fallback) const {
    const auto* v = Find<double>(name);
    return v != nullptr ? *v : fallback;
  }
  std::vector<int64_t> Ints(std::string_view name, std::vector<int64_t> fallback = {}) const {
    const auto* v = Find<std::vector<int64_t>>(name);
    return v != nullptr ? *v : fallback;
  }

  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  /// Compares tensors and bodies by content.
  bool operator==(const AttrMap& other) const;

  /// "{axis=1, perm=[0, 2], scale=f(0x1p-3), mode=\"x\"}"; "" when empty.
  std::string ToString() const;
  /// Inverse of ToString; an empty map if the next token is not "{". InvalidArgument with the
  /// position.
  static absl::StatusOr<AttrMap> Parse(Lexer& in);

 private:
  std::map<std::string, AttrValue> values_;
};

/// "f32[2,2] {0x1p+0, nan, ...}": dtype, extents and every element; integers in decimal, floats in
/// hex. Every text form writes inline constants this way.
std::string TensorToText(const HostTensor& tensor);
/// Inverse of TensorToText. InvalidArgument, with the position, also for more than 2^24 elements.
absl::StatusOr<HostTensor> ParseTensorText(Lexer& in);

}  // namespace fusion
