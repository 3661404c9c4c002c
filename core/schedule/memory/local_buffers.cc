#include "core/schedule/memory/local_buffers.h"

#include <algorithm>

namespace fusion {

BufferId LocalBuffers::Add(const std::vector<DimId>& dims, DType dtype, Level level,
                           BufferLayout layout) {
  size_t number = schedule_->buffers.size() - static_cast<size_t>(schedule_->params);
  schedule_->buffers.push_back({.name = StrCat("t", number),
                                .level = level,
                                .dtype = dtype,
                                .dims = dims,
                                .layout = std::move(layout)});
  return static_cast<BufferId>(schedule_->buffers.size()) - 1;
}

void LocalBuffers::Use(BufferId b) {
  if (schedule_->buffer(b).level != Level::kStaged) return;
  auto [it, fresh] = spans_.try_emplace(b, Span{section_, nest_, nest_, false, ""});
  if (fresh) return;
  if (it->second.section != section_) {
    it->second.other_sections = true;
  } else {
    it->second.last = std::max(it->second.last, nest_);
  }
}

void LocalBuffers::NextPart(const std::vector<BufferId>& before,
                            const std::function<bool(int op)>& lasts) {
  wanted_.assign(buffer_of_.size(), -1);
  for (size_t i = 0; i < buffer_of_.size(); ++i) {
    if (lasts(static_cast<int>(i))) {
      wanted_[i] = buffer_of_[i];
    } else {
      buffer_of_[i] = before[i];
    }
  }
}

void LocalBuffers::UseAsFold(BufferId b, const std::string& monoid) {
  Use(b);
  spans_.at(b).init = monoid;
}

}  // namespace fusion
