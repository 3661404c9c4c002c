#pragma once

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/args/option_words.h"

namespace fusion {

// The words of single commands.

inline const Choices<ShowWhat> kShowWhats = {
    {"graph", ShowWhat::kGraph}, {"program", ShowWhat::kProgram},   {"smg", ShowWhat::kSmg},
    {"plan", ShowWhat::kPlan},   {"schedule", ShowWhat::kSchedule}, {"source", ShowWhat::kSource}};

inline const Choices<ShowFormat> kShowFormats = {
    {"text", ShowFormat::kText}, {"json", ShowFormat::kJson}, {"dot", ShowFormat::kDot}};

inline const Choices<StoreAction> kStoreActions = {
    {"stats", StoreAction::kStats},     {"verify", StoreAction::kVerify},
    {"compact", StoreAction::kCompact}, {"pin", StoreAction::kPin},
    {"unpin", StoreAction::kUnpin},     {"invalidate", StoreAction::kInvalidate},
    {"export", StoreAction::kExport},   {"import", StoreAction::kImport}};

inline const Choices<Shell> kShells = {
    {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};

}  // namespace fusion
