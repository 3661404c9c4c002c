#include "core/wire/options/registered_kernels.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/base/files/file.h"
#include "core/device/target.h"
#include "core/wire/basics/decode_each.h"
#include "core/wire/basics/letters.h"
#include "core/wire/basics/text_format.h"
#include "fusion/v1/registered_kernels.pb.h"

namespace fusion {
namespace {

// Registrations of the largest allowed size have some 500 KiB.
constexpr int64_t kMaxKernelsFileBytes = int64_t{1} << 20;
constexpr std::string_view kExtension = ".textproto";

// Names that mean nothing else in a source.
bool IsConstantName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxConstantNameBytes && IsLetter(name[0]) &&
         !name.starts_with("fk_") && !name.starts_with("FUSION") &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}

// What a source includes is not part of its digest.
absl::Status CheckNoIncludes(std::string_view source) {
  int line = 0;
  for (std::string_view text : StrSplit(source, '\n')) {
    ++line;
    text = StripSpace(text);
    if (!text.starts_with('#')) continue;
    const std::string_view directive = StripSpace(text.substr(1));
    if (directive.starts_with("include") || directive.starts_with("import")) {
      return InvalidArgument("line ", line, ": ", QuoteShort(text),
                             "; expected a source without includes: the ABI stands before it");
    }
  }
  return absl::OkStatus();
}

/// Reads one registration.
class KernelDecoder {
 public:
  KernelDecoder(const v1::RegisteredKernel& wire, std::string dir)
      : wire_(wire), dir_(std::move(dir)) {}

  absl::StatusOr<RegisteredKernel> Run() {
    v1::FusionRule rule;
    rule.set_name(wire_.name());
    *rule.mutable_pattern() = wire_.pattern();
    *rule.mutable_when() = wire_.when();
    rule.mutable_force();
    ASSIGN_OR_RETURN(out_.rule, DecodeRule(rule));
    for (const RuleNode& node : out_.rule.nodes) ids_.push_back(node.id);
    RETURN_IF_ERROR(AddParams());
    RETURN_IF_ERROR(CheckCount("integers and numbers", wire_.integers_size() + wire_.numbers_size(),
                               0, kMaxKernelConstants));
    RETURN_IF_ERROR(AddConstants("integers", wire_.integers(), /*integer=*/true));
    RETURN_IF_ERROR(AddConstants("numbers", wire_.numbers(), /*integer=*/false));
    if (wire_.phases() < 0 || wire_.phases() > kMaxKernelPhases) {
      return InvalidArgument("phases: ", wire_.phases(), "; expected 0..", kMaxKernelPhases);
    }
    out_.phases = std::max(wire_.phases(), 1);
    RETURN_IF_ERROR(SetBytes("scratch_bytes", wire_.scratch_bytes(), &out_.scratch));
    RETURN_IF_ERROR(SetBytes("workspace_bytes", wire_.workspace_bytes(), &out_.workspace));
    for (const std::string& name : wire_.isas()) {
      absl::StatusOr<Isa> isa = ParseIsa(name);
      if (!isa.ok()) return Annotate(isa.status(), StrCat("isas[", out_.isas.size(), "]"));
      out_.isas.push_back(name);
    }
    RETURN_IF_ERROR(AddCost());
    out_.force = wire_.force();
    RETURN_IF_ERROR(ReadSource());
    return std::move(out_);
  }

 private:
  absl::Status AddParams() {
    RETURN_IF_ERROR(CheckCount("params", wire_.params_size(), 1, kMaxKernelParams));
    bool writes = false;
    for (const std::string& text : wire_.params()) {
      const std::string field = StrCat("params[", out_.params.size(), "]");
      absl::StatusOr<RuleStep> step = ParseRuleTensor(text, ids_);
      if (!step.ok()) return Annotate(step.status(), field);
      const bool twice = step->output && Contains(*step);
      if (twice) return InvalidArgument(field, ": ", Quote(text), " twice");
      writes |= step->output;
      out_.params.push_back(*std::move(step));
      out_.param_texts.emplace_back(StripSpace(text));
    }
    if (writes) return absl::OkStatus();
    return InvalidArgument("params: no output; expected at least one ID.output");
  }

  bool Contains(const RuleStep& output) const {
    return std::any_of(out_.params.begin(), out_.params.end(), [&](const RuleStep& step) {
      return step.output && step.node == output.node && step.position == output.position;
    });
  }

  template <typename Wire>
  absl::Status AddConstants(std::string_view field, const Wire& constants, bool integer) {
    int i = 0;
    for (const v1::KernelConstant& wire : constants) {
      const std::string where = StrCat(field, "[", i++, "]");
      if (!IsConstantName(wire.name())) {
        return InvalidArgument(where, ".name: ", QuoteShort(wire.name()),
                               "; expected a letter, then letters, digits and '_', at most ",
                               kMaxConstantNameBytes, ", and neither fk_ nor FUSION in front");
      }
      auto same = [&](const KernelConstant& other) { return other.name == wire.name(); };
      if (std::any_of(out_.constants.begin(), out_.constants.end(), same)) {
        return InvalidArgument(where, ".name: ", Quote(wire.name()), " is the name of another one");
      }
      KernelConstant constant{.name = wire.name(), .integer = integer, .text = wire.value()};
      absl::StatusOr<std::vector<RuleStep>> value = ParseRuleExpression(wire.value(), ids_);
      if (!value.ok()) return Annotate(value.status(), StrCat(where, ".value"));
      constant.value = *std::move(value);
      out_.constants.push_back(std::move(constant));
    }
    return absl::OkStatus();
  }

  absl::Status SetBytes(std::string_view field, const std::string& text, KernelBytes* bytes) const {
    if (text.empty()) return absl::OkStatus();
    absl::StatusOr<std::vector<RuleStep>> value = ParseRuleExpression(text, ids_);
    if (!value.ok()) return Annotate(value.status(), field);
    *bytes = {.text = text, .value = *std::move(value)};
    return absl::OkStatus();
  }

  absl::Status AddCost() {
    if (!wire_.has_cost()) return absl::OkStatus();
    const v1::KernelCost& cost = wire_.cost();
    if (cost.cost_case() == v1::KernelCost::kTimeUs) {
      absl::StatusOr<std::vector<RuleStep>> time = ParseRuleExpression(cost.time_us(), ids_);
      if (!time.ok()) return Annotate(time.status(), "cost.time_us");
      out_.time_us = *std::move(time);
      out_.time_text = cost.time_us();
      return absl::OkStatus();
    }
    if (cost.cost_case() != v1::KernelCost::kRate) {
      return InvalidArgument("cost: empty; expected time_us or rate");
    }
    // Written so that NaN fails too.
    auto rate = [](double value) { return value >= 0 && value <= 1e15; };
    out_.flops_per_us = cost.rate().flops_per_us();
    out_.bytes_per_us = cost.rate().bytes_per_us();
    if (!rate(out_.flops_per_us)) {
      return InvalidArgument("cost.rate.flops_per_us: ", out_.flops_per_us, "; expected 0..1e15");
    }
    if (!rate(out_.bytes_per_us)) {
      return InvalidArgument("cost.rate.bytes_per_us: ", out_.bytes_per_us, "; expected 0..1e15");
    }
    if (out_.flops_per_us > 0 || out_.bytes_per_us > 0) return absl::OkStatus();
    return InvalidArgument("cost.rate: both are 0; expected flops_per_us or bytes_per_us");
  }

  absl::Status ReadSource() {
    if (wire_.source().empty()) return InvalidArgument("source: missing; expected a file");
    out_.path = (std::filesystem::path(dir_) / wire_.source()).string();
    absl::StatusOr<std::string> source = ReadFile(out_.path, kMaxKernelSourceBytes);
    if (!source.ok()) return InvalidArgument("source: ", Message(source.status()));
    // A compiler reads on behind it, another reader may not.
    if (source->find('\0') != std::string::npos) {
      return InvalidArgument("source: ", out_.path, ": expected text, got a zero byte");
    }
    absl::Status closed = CheckNoIncludes(*source);
    if (!closed.ok()) return InvalidArgument("source: ", out_.path, ": ", Message(closed));
    out_.source = *std::move(source);
    out_.source_sha256 = Sha256(out_.source);
    return absl::OkStatus();
  }

  const v1::RegisteredKernel& wire_;
  const std::string dir_;
  std::vector<std::string> ids_;
  RegisteredKernel out_;
};

// Adds those of one file that are right; what is wrong with the others goes to `problems`.
void AddFile(const std::string& path, const RuleCheck& check, std::set<std::string>* names,
             RegisteredKernels* out, std::vector<absl::Status>* problems) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxKernelsFileBytes);
  if (!text.ok()) return problems->push_back(InvalidArgument(Message(text.status())));
  google::protobuf::TextFormat::ParseInfoTree places;
  v1::RegisteredKernels wire;
  if (std::optional<TextError> error = ReadTextFormat(*text, &wire, &places)) {
    return problems->push_back(
        InvalidArgument(path, ":", error->line, ": column ", error->column, ": ", error->message));
  }
  const google::protobuf::FieldDescriptor* field =
      v1::RegisteredKernels::descriptor()->FindFieldByNumber(
          v1::RegisteredKernels::kKernelsFieldNumber);
  const std::string dir = std::filesystem::path(path).parent_path().string();
  for (int i = 0; i < wire.kernels_size(); ++i) {
    std::string where = StrCat(path, ":", places.GetLocation(field, i).line + 1, ": kernels[", i,
                               "] ", QuoteShort(wire.kernels(i).name()));
    absl::StatusOr<RegisteredKernel> kernel = KernelDecoder(wire.kernels(i), dir).Run();
    absl::Status right = kernel.status();
    if (right.ok() && !names->insert(kernel->name()).second) {
      right = InvalidArgument("name: an earlier kernel has the same");
    }
    if (right.ok() && check != nullptr) right = check(kernel->rule);
    if (right.ok() && out->size() >= static_cast<size_t>(kMaxRegisteredKernels)) {
      return problems->push_back(
          InvalidArgument(where, ": more than ", kMaxRegisteredKernels, " kernels"));
    }
    if (right.ok()) {
      out->push_back(std::make_shared<const RegisteredKernel>(*std::move(kernel)));
    } else {
      problems->push_back(Annotate(right, where));
    }
  }
}

RegisteredKernels ReadEach(const std::string& path, const RuleCheck& check,
                           std::vector<absl::Status>* problems) {
  std::vector<std::string> files = {path};
  std::error_code error;
  auto fail = [&](const absl::Status& why) {
    problems->push_back(why);
    return RegisteredKernels();
  };
  if (std::filesystem::is_directory(path, error)) {
    files.clear();
    for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == kExtension) files.push_back(it->path().string());
    }
    if (error) return fail(InvalidArgument(path, ": ", error.message()));
    if (files.empty()) return fail(InvalidArgument(path, ": no file *", kExtension, " in it"));
    std::sort(files.begin(), files.end());
  }
  std::set<std::string> names;
  RegisteredKernels out;
  for (const std::string& file : files) AddFile(file, check, &names, &out, problems);
  return out;
}

}  // namespace

absl::StatusOr<RegisteredKernels> ReadRegisteredKernels(const std::string& path,
                                                        const RuleCheck& check) {
  std::vector<absl::Status> problems;
  RegisteredKernels kernels = ReadEach(path, check, &problems);
  if (!problems.empty()) return problems.front();
  return kernels;
}

std::vector<absl::Status> ProblemsOfRegisteredKernels(const std::string& path,
                                                      const RuleCheck& check) {
  std::vector<absl::Status> problems;
  ReadEach(path, check, &problems);
  return problems;
}

}  // namespace fusion
