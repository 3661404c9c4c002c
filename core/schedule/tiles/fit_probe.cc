#include "core/schedule/tiles/fit_probe.h"

#include <algorithm>

#include "core/base/refusal.h"
#include "core/schedule/lower/streamed_group.h"
#include "core/schedule/tiles/legality.h"

namespace fusion {
namespace {

// Choices that are lowered: the enumeration puts the promising ones first.
constexpr size_t kMostChoices = 16;

class Prober {
 public:
  Prober(const FusionGroup& group, const DeviceSpec& device, const CandidateOptions& options)
      : group_(group),
        device_(device),
        options_(options),
        lowering_(group, device, options.bitwise) {
    options_.keep_misfits = true;
  }

  std::optional<FitProbe> Run() {
    std::string ignored;
    std::vector<Choice> choices = EnumerateChoices(group_, device_, options_, &ignored);
    if (choices.size() > kMostChoices) choices.resize(kMostChoices);
    std::optional<Choice> closest;
    double least = 0;
    for (const Choice& choice : choices) {
      std::optional<std::vector<FitProbe::Level>> lacking = Lacking(choice);
      if (!lacking.has_value()) continue;
      if (lacking->empty()) return std::nullopt;
      double worst = 0;
      for (const FitProbe::Level& level : *lacking) {
        worst = std::max(worst, static_cast<double>(level.needed_bytes) /
                                    static_cast<double>(std::max<int64_t>(level.usable_bytes, 1)));
      }
      if (closest.has_value() && worst >= least) continue;
      least = worst;
      closest = choice;
      probe_.lacking = *std::move(lacking);
    }
    if (!closest.has_value()) return std::nullopt;
    ShortenTiles(*closest);
    ExplainStreaming();
    return probe_;
  }

 private:
  // The levels that a choice overflows; nothing if it has no schedule.
  std::optional<std::vector<FitProbe::Level>> Lacking(const Choice& choice) {
    auto lowered = lowering_.Of(choice);
    if (!lowered.ok()) return std::nullopt;
    std::vector<FitProbe::Level> out;
    OnChipNeed need = NeedOnChip(lowered->schedule, device_);
    for (const auto& [name, bytes] : need.ByLevel(device_)) {
      int64_t usable = device_.level(name).UsableBytes();
      if (bytes > usable) out.push_back({name, bytes, usable});
    }
    return out;
  }

  // The dim whose tile must shrink least, in proportion.
  void ShortenTiles(const Choice& choice) {
    double best = 0;
    for (size_t g = 0; g < choice.grid.size(); ++g) {
      int64_t tried = std::min(choice.grid[g].tile, group_.smg.dim(choice.grid[g].dim).extent);
      auto fits = [&](int64_t tile) {
        Choice shorter = choice;
        shorter.grid[g].tile = tile;
        std::optional<std::vector<FitProbe::Level>> lacking = Lacking(shorter);
        return lacking.has_value() && lacking->empty();
      };
      if (tried < 2 || !fits(1)) continue;
      int64_t longest = 1;
      int64_t too_long = tried;
      while (too_long - longest > 1) {
        int64_t middle = longest + (too_long - longest) / 2;
        (fits(middle) ? longest : too_long) = middle;
      }
      double part = static_cast<double>(longest) / static_cast<double>(tried);
      if (part <= best) continue;
      best = part;
      probe_.dim = group_.smg.dim(choice.grid[g].dim).name;
      probe_.tile = longest;
      probe_.tried_tile = tried;
    }
  }

  void ExplainStreaming() {
    for (DimId d = 0; d < static_cast<DimId>(group_.smg.dims.size()); ++d) {
      bool reduced = std::any_of(group_.smg.ops.begin(), group_.smg.ops.end(),
                                 [d](const SmgOp& op) { return op.Reduces(d); });
      if (!reduced) continue;
      Refusal refusal;
      if (StreamGroup(group_, d, &refusal) != nullptr) continue;
      probe_.streaming = std::move(refusal.words);
      return;
    }
  }

  const FusionGroup& group_;
  const DeviceSpec& device_;
  CandidateOptions options_;
  GroupLowering lowering_;
  FitProbe probe_;
};

}  // namespace

std::optional<FitProbe> ProbeFit(const FusionGroup& group, const DeviceSpec& device,
                                 const CandidateOptions& options) {
  if (!device.explicit_memory) return std::nullopt;
  return Prober(group, device, options).Run();
}

}  // namespace fusion
