#include "core/rewrite/program_passes.h"

#include "core/rewrite/integer_products.h"
#include "core/rewrite/layouts.h"
#include "core/rewrite/picked_elements.h"
#include "core/rewrite/side_by_side.h"

namespace fusion {
namespace {

bool Always(Numerics /*numerics*/) { return true; }
bool NotBitwise(Numerics numerics) { return numerics != Numerics::kBitwise; }
bool IfFast(Numerics numerics) { return numerics == Numerics::kFast; }

}  // namespace

const std::vector<ProgramPass>& ProgramPasses() {
  static const auto& passes = *new std::vector<ProgramPass>{
      {"side-by-side", Always,
       [](const DeviceSpec&, Numerics numerics, const LeaveProduct& leave, Program* program) {
         return UniteSideBySide(NotBitwise(numerics), program, leave);
       },
       true},
      {"picked-elements", Always,
       [](const DeviceSpec&, Numerics, const LeaveProduct& leave, Program* program) {
         return PickBeforeStoring(program, leave);
       },
       true},
      {"integer-products", Always,
       [](const DeviceSpec& device, Numerics numerics, const LeaveProduct& leave,
          Program* program) {
         return MultiplyIntegers(device, NotBitwise(numerics), program, leave);
       }},
      {"narrow-weights", NotBitwise,
       [](const DeviceSpec& device, Numerics, const LeaveProduct& leave, Program* program) {
         return ReadNarrowWeights(device, program, leave);
       }},
      {"rounded-products", IfFast,
       [](const DeviceSpec& device, Numerics, const LeaveProduct& leave, Program* program) {
         return RoundProducts(device, program, leave);
       }},
      {"layouts", Always,
       [](const DeviceSpec& device, Numerics, const LeaveProduct& leave, Program* program) {
         return StoreColumnsInnermost(device, program, leave);
       }},
  };
  return passes;
}

absl::StatusOr<std::vector<SkippedPass>> RunPasses(
    const std::vector<ProgramPass>& passes, const DeviceSpec& device, Numerics numerics,
    std::set<std::string> without, const LeaveProduct& leave,
    const std::function<absl::StatusOr<Program>()>& again, Program* program) {
  std::vector<SkippedPass> skipped;
  for (size_t p = 0; p < passes.size(); ++p) {
    const ProgramPass& pass = passes[p];
    if (!pass.allowed(numerics) || without.contains(pass.name)) continue;
    if (!pass.run(device, numerics, leave, program)) continue;
    const absl::Status sound = Verify(*program);
    if (sound.ok()) continue;
    skipped.push_back({pass.name, std::string(Message(sound))});
    without.insert(pass.name);
    ASSIGN_OR_RETURN(*program, again());
    p = static_cast<size_t>(-1);  // from the first one
  }
  return skipped;
}

}  // namespace fusion
