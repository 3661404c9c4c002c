#include "core/wire/basics/sizes.h"

#include "core/tensor/shape.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

constexpr int kMostTerms = 16;
constexpr int kMostFactors = 8;

}  // namespace

void EncodeSize(const SizeExpr& size, v1::SizeExpr* out) {
  for (const SizeExpr::Term& term : size.terms()) {
    v1::SizeExpr::Term* wire = out->add_terms();
    wire->set_coefficient(term.coefficient);
    wire->mutable_symbols()->Add(term.symbols.begin(), term.symbols.end());
  }
}

absl::StatusOr<SizeExpr> DecodeSize(const v1::SizeExpr& wire) {
  if (wire.terms_size() > kMostTerms) {
    return InvalidArgument("terms: ", wire.terms_size(), "; at most ", kMostTerms);
  }
  std::vector<SizeExpr::Term> terms;
  for (const v1::SizeExpr::Term& term : wire.terms()) {
    if (term.symbols_size() > kMostFactors) {
      return InvalidArgument("symbols: ", term.symbols_size(), " in a term; at most ",
                             kMostFactors);
    }
    for (int s : term.symbols()) {
      if (s >= 0 && static_cast<size_t>(s) < kMaxPlanSymbols) continue;
      return InvalidArgument("symbols: ", s, "; expected 0..", kMaxPlanSymbols - 1);
    }
    // Sums of these stay far from where integers end.
    if (term.coefficient() > kMaxSpaceBytes || term.coefficient() < -kMaxSpaceBytes) {
      return InvalidArgument("coefficient: ", term.coefficient(), "; expected at most ",
                             kMaxSpaceBytes);
    }
    terms.push_back({term.coefficient(), {term.symbols().begin(), term.symbols().end()}});
  }
  return SizeExpr::Sum(std::move(terms));
}

void EncodeRange(const DimRange& range, v1::DimRange* out) {
  out->set_min(range.least);
  out->set_max(range.most);
  out->set_multiple(range.multiple);
  out->set_likely(range.likely);
}

absl::StatusOr<DimRange> DecodeRange(const v1::DimRange& wire) {
  DimRange range{.least = wire.min(),
                 .most = wire.max(),
                 .multiple = wire.multiple() == 0 ? 1 : wire.multiple(),
                 .likely = wire.likely()};
  RETURN_IF_ERROR(CheckRange(range));
  return range;
}

void EncodeSample(const PlanSample& sample, v1::PlanSample* out) {
  out->mutable_values()->Add(sample.values.begin(), sample.values.end());
  out->set_family_us(sample.family_us);
  out->set_exact_us(sample.exact_us);
}

absl::StatusOr<PlanSample> DecodeSample(const v1::PlanSample& wire) {
  // Written so that NaN fails too.
  constexpr double kDayUs = 86400e6;
  if (!(wire.family_us() >= 0 && wire.exact_us() >= 0 && wire.family_us() <= kDayUs &&
        wire.exact_us() <= kDayUs)) {
    return InvalidArgument("family_us and exact_us: ", wire.family_us(), " and ", wire.exact_us(),
                           "; expected times below a day");
  }
  return PlanSample{.values = {wire.values().begin(), wire.values().end()},
                    .family_us = wire.family_us(),
                    .exact_us = wire.exact_us()};
}

}  // namespace fusion
