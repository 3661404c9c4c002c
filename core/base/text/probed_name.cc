#include "core/base/text/probed_name.h"

#include <algorithm>

#include "core/base/text/text.h"

namespace fusion {
namespace {

constexpr std::string_view kProbeMark = "+probe-";

bool AllOf(std::string_view text, std::string_view letters) {
  return text.find_first_not_of(letters) == std::string_view::npos;
}

}  // namespace

std::string ProbedNameText(const ProbedName& name) {
  std::string date = name.date;
  std::erase(date, '-');
  return StrCat(name.spec, kProbeMark, date, "-", name.digest);
}

std::optional<ProbedName> ParseProbedName(std::string_view name) {
  const size_t at = name.rfind(kProbeMark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = name.substr(at + kProbeMark.size());
  if (rest.size() != 17 || rest[8] != '-' || !AllOf(rest.substr(0, 8), "0123456789") ||
      !AllOf(rest.substr(9), "0123456789abcdef")) {
    return std::nullopt;
  }
  return ProbedName{
      .spec = std::string(name.substr(0, at)),
      .date = StrCat(rest.substr(0, 4), "-", rest.substr(4, 2), "-", rest.substr(6, 2)),
      .digest = std::string(rest.substr(9))};
}

std::string DeviceNameText(std::string_view name) {
  const std::optional<ProbedName> probed = ParseProbedName(name);
  if (!probed) return std::string(name);
  return StrCat(probed->spec, " with constants measured by probe on ", probed->date, " (",
                probed->digest, ")");
}

}  // namespace fusion
