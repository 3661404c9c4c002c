#include "client/fusionctl/service/stored_kernel.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "client/fusionctl/output/print.h"
#include "client/fusionctl/service/plan_keys.h"
#include "client/fusionctl/service/session.h"

namespace fusion {
namespace {

constexpr std::string_view kSymbolPrefix = "fk_";

// The digits of a key or symbol, in lower case.
std::string Digits(std::string word) {
  if (word.starts_with(kSymbolPrefix)) word.erase(0, kSymbolPrefix.size());
  for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
  return word;
}

absl::StatusOr<std::string> TextOf(const KernelTexts& texts, ShowWhat what) {
  const std::string* text = nullptr;
  if (what == ShowWhat::kSource) text = &texts.source;
  if (what == ShowWhat::kSchedule) text = &texts.schedule;
  if (what == ShowWhat::kSmg) text = &texts.smg;
  if (what == ShowWhat::kProgram) text = &texts.reference;
  if (text == nullptr) {
    return InvalidArgument(
        "a kernel has source, schedule, smg and program; graph and plan are of "
        "models");
  }
  if (!text->empty()) return *text;
  return NotFound("the service did not keep this text of kernel ", texts.key.ToHex());
}

}  // namespace

absl::StatusOr<Digest> FindKernel(const std::string& word, const Client& client) {
  const std::string digits = Digits(word);
  Digest whole;
  if (Digest::FromHex(digits, &whole)) return whole;
  std::map<std::string, Digest> found;
  ASSIGN_OR_RETURN(const std::vector<PlanSummary> plans, client.ListPlans());
  for (const PlanSummary& summary : plans) {
    absl::StatusOr<StoredPlanTexts> stored = client.GetStoredPlan(summary.plan_key);
    if (absl::IsNotFound(stored.status())) continue;  // it went meanwhile
    RETURN_IF_ERROR(stored.status());
    for (const PlanKernel& kernel : stored->plan.kernels) {
      const std::string hex = kernel.key.ToHex();
      if (hex.starts_with(digits)) found[hex] = kernel.key;
    }
  }
  if (found.size() == 1) return found.begin()->second;
  if (found.empty()) {
    return NotFound("no kernel of a stored plan has a key that begins with ", digits);
  }
  return InvalidArgument(found.size(), " kernels have keys that begin with ", digits, ": ",
                         StrJoin(found, ", ", [](const auto& kernel) { return kernel.first; }));
}

bool IsKernelSubject(const std::string& word) {
  std::error_code ignored;
  return LooksLikeKey(Digits(word)) && !std::filesystem::exists(word, ignored);
}

absl::StatusOr<ExitCode> ShowStoredKernel(const Arguments& arguments, Progress* progress) {
  if (arguments.server.empty() && arguments.store.empty()) {
    return InvalidArgument("the kernel ", arguments.model,
                           " of which service? expected --server ADDRESS or --store DIR");
  }
  if (arguments.format == ShowFormat::kDot) {
    return InvalidArgument("--format dot is for models; the texts of a kernel are text or json");
  }
  return WithService(arguments, progress, [&](const Client& client) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(const Digest key, FindKernel(arguments.model, client));
    ASSIGN_OR_RETURN(const KernelTexts texts, client.GetKernelTexts(key));
    ASSIGN_OR_RETURN(const std::string text, TextOf(texts, arguments.what));
    progress->Clear();
    if (arguments.format == ShowFormat::kJson) {
      PrintJson(Json{{"key", key.ToHex()},
                     {"content_sha256", texts.content.ToHex()},
                     {"compiler", texts.compiler},
                     {"text", text}});
    } else {
      PrintAsItIs(text);
    }
    return kExitOk;
  });
}

}  // namespace fusion
