#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/status.h"

namespace fusion {

/// Named scalars as one MessagePack map: no nesting, so that a hostile message cannot recurse.
///
///   FlatMessage m;  m.SetText("symbol", "fk_12");  m.SetInt("isa", 2);  channel.Send(m.Encode());
///
/// The getters fail with InvalidArgument that names the field if it is absent or of another type.
/// Not thread-safe.
class FlatMessage {
 public:
  void SetText(const std::string& name, std::string_view bytes) {
    fields_[name] = std::string(bytes);
  }
  void SetInt(const std::string& name, int64_t value) { fields_[name] = value; }
  void SetNumber(const std::string& name, double value) { fields_[name] = value; }
  void SetFlag(const std::string& name, bool value) { fields_[name] = value; }

  absl::StatusOr<std::string> Text(const std::string& name) const;
  absl::StatusOr<int64_t> Int(const std::string& name) const;
  absl::StatusOr<double> Number(const std::string& name) const;
  absl::StatusOr<bool> Flag(const std::string& name) const;

  /// Deterministic; texts become binary values.
  std::string Encode() const;
  /// InvalidArgument for anything that Encode does not write.
  static absl::StatusOr<FlatMessage> Decode(std::string_view bytes);

 private:
  using Field = std::variant<bool, int64_t, double, std::string>;

  template <typename T>
  absl::StatusOr<T> Get(const std::string& name, std::string_view type) const;

  friend class FlatMessageReader;
  std::map<std::string, Field> fields_;
};

}  // namespace fusion
