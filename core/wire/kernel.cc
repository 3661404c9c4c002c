#include "core/wire/kernel.h"

#include <cmath>

#include "core/wire/basics/scalars.h"
#include "core/wire/options/tile_search.h"
#include "fusion/v1/plan.pb.h"

namespace fusion {
namespace {

// Our kernels have 15 KiB; a whole-layer kernel of every tail variant stays far below this.
constexpr size_t kMaxBinaryBytes = size_t{64} << 20;

absl::Status CheckDuration(std::string_view field, double milliseconds) {
  if (std::isfinite(milliseconds) && milliseconds >= 0) return absl::OkStatus();
  return InvalidArgument("kernel.", field, ": ", milliseconds, "; expected 0 or more");
}

}  // namespace

void EncodeCheckReport(const CheckReport& report, v1::CheckReport* out) {
  out->set_verified(report.verified);
  out->set_reason(TextToWire(report.reason));
  out->set_max_abs(report.max_abs);
  out->set_max_rel(report.max_rel);
  out->set_elements(report.elements);
  out->set_outside(report.outside);
}

absl::StatusOr<CheckReport> DecodeCheckReport(const v1::CheckReport& wire) {
  if (wire.elements() < 0 || wire.outside() < 0) {
    return InvalidArgument("check: ", wire.outside(), " of ", wire.elements(),
                           " elements outside; expected no negative counts");
  }
  CheckReport report;
  report.verified = wire.verified();
  report.reason = wire.reason();
  report.max_abs = wire.max_abs();
  report.max_rel = wire.max_rel();
  report.elements = wire.elements();
  report.outside = wire.outside();
  return report;
}

void EncodeKernel(const KernelArtifact& kernel, v1::KernelArtifact* out) {
  out->set_key(DigestToWire(kernel.key));
  out->set_full_key(kernel.full_key);
  out->set_content_sha256(DigestToWire(kernel.content));
  out->set_binary(kernel.binary);
  out->set_source(TextToWire(kernel.source));
  out->set_schedule(TextToWire(kernel.schedule));
  out->set_compiler(TextToWire(kernel.compiler));
  out->set_reference(TextToWire(kernel.reference));
  out->set_compile_ms(kernel.compile_ms);
  out->set_check_ms(kernel.check_ms);
  EncodeCheckReport(kernel.check, out->mutable_check());
  for (const MeasuredTiles& search : kernel.searches) {
    EncodeMeasuredTiles(search, out->add_searches());
  }
}

absl::StatusOr<KernelArtifact> DecodeKernel(const v1::KernelArtifact& wire) {
  KernelArtifact kernel;
  absl::StatusOr<Digest> key = DigestFromWire(wire.key());
  if (!key.ok()) return Annotate(key.status(), "kernel.key");
  kernel.key = *key;
  kernel.full_key = wire.full_key();
  if (Sha256(kernel.full_key) != kernel.key) {
    return DataLoss("kernel ", kernel.key.ToHex(), ": full_key (", kernel.full_key.size(),
                    " bytes) has another digest");
  }
  absl::StatusOr<Digest> content = DigestFromWire(wire.content_sha256());
  if (!content.ok()) return Annotate(content.status(), "kernel.content_sha256");
  kernel.content = *content;
  if (wire.binary().empty() || wire.binary().size() > kMaxBinaryBytes) {
    return InvalidArgument("kernel.binary: ", wire.binary().size(), " bytes; expected 1..",
                           kMaxBinaryBytes);
  }
  kernel.binary = wire.binary();
  if (Sha256(kernel.binary) != kernel.content) {
    return DataLoss("kernel ", kernel.key.ToHex(), ": binary (", kernel.binary.size(),
                    " bytes) is not what content_sha256 says");
  }
  kernel.source = wire.source();
  kernel.schedule = wire.schedule();
  kernel.compiler = wire.compiler();
  kernel.reference = wire.reference();
  RETURN_IF_ERROR(CheckDuration("compile_ms", wire.compile_ms()));
  kernel.compile_ms = wire.compile_ms();
  RETURN_IF_ERROR(CheckDuration("check_ms", wire.check_ms()));
  kernel.check_ms = wire.check_ms();
  ASSIGN_OR_RETURN(kernel.check, DecodeCheckReport(wire.check()));
  if (wire.searches_size() > static_cast<int>(kMaxMeasuredTiles)) {
    return InvalidArgument("kernel.searches: ", wire.searches_size(), " entries; at most ",
                           kMaxMeasuredTiles);
  }
  for (int i = 0; i < wire.searches_size(); ++i) {
    absl::StatusOr<MeasuredTiles> search = DecodeMeasuredTiles(wire.searches(i));
    if (!search.ok()) {
      return InvalidArgument("kernel.searches[", i, "].", Message(search.status()));
    }
    kernel.searches.push_back(*std::move(search));
  }
  return kernel;
}

std::string EncodeArtifact(const KernelArtifact& kernel) {
  v1::KernelArtifact wire;
  EncodeKernel(kernel, &wire);
  return wire.SerializeAsString();
}

absl::StatusOr<KernelArtifact> DecodeArtifact(std::string_view bytes) {
  v1::KernelArtifact wire;
  if (bytes.size() > INT32_MAX ||
      !wire.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("kernel: ", bytes.size(),
                           " bytes that are not a fusion.v1.KernelArtifact");
  }
  return DecodeKernel(wire);
}

}  // namespace fusion
