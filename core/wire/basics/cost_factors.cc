#include "core/wire/basics/cost_factors.h"

#include "core/wire/basics/scalars.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

constexpr int kMaxProductTypes = 16;
constexpr int kMaxClasses = 64;

absl::Status CheckFactor(std::string_view field, double factor) {
  // Written so that NaN fails too. The bounds have room for rounding.
  if (factor >= kLeastCostFactor * 0.999 && factor <= kMostCostFactor * 1.001)
    return absl::OkStatus();
  return InvalidArgument(field, ": ", factor, "; expected ", kLeastCostFactor, "..",
                         kMostCostFactor);
}

}  // namespace

void EncodeFactors(const CostFactors& factors, v1::CostFactors* out) {
  out->set_launch(factors.launch);
  out->set_barrier(factors.barrier);
  out->set_task(factors.task);
  out->set_element(factors.element);
  out->set_shared(factors.shared);
  out->set_memory(factors.memory);
  out->set_local(factors.local);
  for (const auto& [type, factor] : factors.product) {
    (*out->mutable_product())[TextToWire(type)] = factor;
  }
  for (const auto& [of, factor] : factors.classes) {
    v1::ClassFactor* to = out->add_classes();
    to->set_bound(TextToWire(of.bound));
    to->set_form(TextToWire(of.form));
    to->set_factor(factor);
  }
}

absl::StatusOr<CostFactors> DecodeFactors(const v1::CostFactors& wire) {
  const double local = wire.local() == 0 ? wire.shared() : wire.local();
  const std::pair<std::string_view, double> kFactors[] = {
      {"launch", wire.launch()}, {"barrier", wire.barrier()},
      {"task", wire.task()},     {"element", wire.element()},
      {"shared", wire.shared()}, {"memory", wire.memory()},
      {"local", local}};
  for (const auto& [field, factor] : kFactors) RETURN_IF_ERROR(CheckFactor(field, factor));
  CostFactors out{.launch = wire.launch(),
                  .barrier = wire.barrier(),
                  .task = wire.task(),
                  .element = wire.element(),
                  .local = local,
                  .shared = wire.shared(),
                  .memory = wire.memory()};
  if (wire.product_size() > kMaxProductTypes) {
    return InvalidArgument("product: ", wire.product_size(), " types; expected at most ",
                           kMaxProductTypes);
  }
  for (const auto& [type, factor] : wire.product()) {
    RETURN_IF_ERROR(CheckName("product", type));
    RETURN_IF_ERROR(CheckFactor(StrCat("product[", type, "]"), factor));
    out.product[type] = factor;
  }
  if (wire.classes_size() > kMaxClasses) {
    return InvalidArgument("classes: ", wire.classes_size(), "; expected at most ", kMaxClasses);
  }
  for (const v1::ClassFactor& of : wire.classes()) {
    RETURN_IF_ERROR(CheckName("bound", of.bound()));
    RETURN_IF_ERROR(CheckName("form", of.form()));
    if (!(of.factor() >= kLeastResidual * 0.999 && of.factor() <= kMostResidual * 1.001)) {
      return InvalidArgument("classes: ", of.factor(), "; expected ", kLeastResidual, "..",
                             kMostResidual);
    }
    if (!out.classes.emplace(KernelClass{of.bound(), of.form()}, of.factor()).second) {
      return InvalidArgument("classes: ", of.bound(), " and ", of.form(), " stand twice");
    }
  }
  return out;
}

void EncodeCalibration(const PlanCalibration& calibration, v1::PlanCalibration* out) {
  out->set_epoch(calibration.epoch);
  EncodeFactors(calibration.factors, out->mutable_factors());
}

absl::StatusOr<PlanCalibration> DecodeCalibration(const v1::PlanCalibration& wire) {
  if (wire.epoch() < 1) {
    return InvalidArgument("epoch: ", wire.epoch(), "; expected at least 1");
  }
  absl::StatusOr<CostFactors> factors = DecodeFactors(wire.factors());
  if (!factors.ok()) return Annotate(factors.status(), "factors");
  return PlanCalibration{wire.epoch(), *std::move(factors)};
}

}  // namespace fusion
