#include "tests/support/remembered_commands.h"

#include <filesystem>
#include <map>
#include <utility>

#include "core/base/files/file.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxFileBytes = int64_t{64} << 20;

using Files = std::map<std::string, std::string>;  // bytes by name

absl::StatusOr<Files> FilesOf(const std::string& dir) {
  Files files;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    ASSIGN_OR_RETURN(files[entry.path().filename()], ReadFile(entry.path(), kMaxFileBytes));
  }
  return files;
}

absl::Status Write(const std::string& dir, const Files& files) {
  for (const auto& [name, bytes] : files) {
    RETURN_IF_ERROR(WriteFile(StrCat(dir, "/", name), bytes));
  }
  return absl::OkStatus();
}

class RememberedCommands : public CommandRunner {
 public:
  RememberedCommands(std::unique_ptr<CommandRunner> runner, const Digest& tools, std::string store)
      : runner_(std::move(runner)), tools_(tools.ToHex()), store_(std::move(store)) {}

  absl::StatusOr<CommandResult> Run(const Command& command) override {
    ASSIGN_OR_RETURN(const Files before, FilesOf(command.dir));
    const std::string place = PlaceOf(command, before);
    if (fs::exists(place)) {
      fs::last_write_time(place, fs::file_time_type::clock::now());
      ASSIGN_OR_RETURN(const Files made, FilesOf(place));
      RETURN_IF_ERROR(Write(command.dir, made));
      return CommandResult{.exit_code = 0, .how = "exited with 0"};
    }
    ASSIGN_OR_RETURN(CommandResult result, runner_->Run(command));
    if (result.end != CommandEnd::kExited || result.exit_code != 0) return result;
    ASSIGN_OR_RETURN(Files after, FilesOf(command.dir));
    std::erase_if(after, [&](const auto& file) {
      const auto same = before.find(file.first);
      return same != before.end() && same->second == file.second;
    });
    RETURN_IF_ERROR(Keep(place, after));
    return result;
  }

 private:
  std::string PlaceOf(const Command& command, const Files& files) const {
    FieldHasher key;
    key.Add("tools", tools_);
    for (const std::string& word : command.argv) key.Add("word", word);
    for (const std::string& variable : command.environment) key.Add("variable", variable);
    for (const auto& [name, bytes] : files) key.Add("name", name).Add("bytes", bytes);
    return StrCat(store_, "/", key.Finish().ToHex());
  }

  // Another process may keep the same at the same time: the first one stays.
  absl::Status Keep(const std::string& place, const Files& files) const {
    RETURN_IF_ERROR(MakeDirectories(store_));
    ASSIGN_OR_RETURN(const TempDir fresh, TempDir::Create(store_, "new-"));
    const std::string made = StrCat(fresh.path(), "/files");
    RETURN_IF_ERROR(MakeDirectories(made));
    RETURN_IF_ERROR(Write(made, files));
    std::error_code lost_the_race;
    fs::rename(made, place, lost_the_race);
    return absl::OkStatus();
  }

  const std::unique_ptr<CommandRunner> runner_;
  const std::string tools_;
  const std::string store_;
};

}  // namespace

std::unique_ptr<CommandRunner> RememberCommands(std::unique_ptr<CommandRunner> runner,
                                                const Digest& tools, const std::string& store) {
  return std::make_unique<RememberedCommands>(std::move(runner), tools, store);
}

}  // namespace fusion
