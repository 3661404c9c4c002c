#include "core/op/repeat.h"

namespace fusion {

/// passes of a body: core/op/repeat.h
OpDef DefineRepeat() {
  return {.name = "Repeat",
          .min_inputs = 0,
          .max_inputs = kMaxRepeatOperands,
          .params = {{.name = "body", .kind = ParamSpec::kRepeat, .required = true}},
          .internal = true,
          .outputs = [](const OpCall& call) -> absl::StatusOr<int> {
            const Repeat* repeat = RepeatOf(call);
            return repeat == nullptr ? 0 : static_cast<int>(repeat->results());
          },
          .max_outputs = kMaxRepeatOperands,
          .counted = [](const OpCall& call) -> std::vector<OpDef::Counted> {
            const Repeat* repeat = RepeatOf(call);
            std::vector<OpDef::Counted> out;
            if (repeat == nullptr || !repeat->tells_passes()) return out;
            for (size_t i = 0; i < repeat->stacked(); ++i) {
              out.push_back({static_cast<int>(repeat->carried() + i), 0});
            }
            return out;
          },
          .repeats = true};
}

}  // namespace fusion
