#include "core/cache/rocks/write_errors.h"

#include <gtest/gtest.h>

#include "core/base/files/file.h"
#include "tests/support/capturing_logger.h"

namespace fusion {
namespace {

TEST(WriteErrors, WhatComesWhileWritingIsMadePossibleAgainIsNotForgotten) {
  CapturingLogger logger;
  WriteErrors errors("/nowhere", logger);
  EXPECT_TRUE(errors.Check().ok());
  errors.Note(rocksdb::Status::NoSpace("a write"));
  EXPECT_TRUE(absl::IsResourceExhausted(errors.Check()));
  const int64_t before = errors.changes();
  rocksdb::Status background = rocksdb::Status::NoSpace("a flush, just behind Resume");
  errors.OnBackgroundError(rocksdb::BackgroundErrorReason::kFlush, &background);
  errors.ClearUnlessChanged(before);
  EXPECT_TRUE(absl::IsResourceExhausted(errors.Check())) << "or nobody would call Resume again";
  errors.ClearUnlessChanged(errors.changes());
  EXPECT_TRUE(errors.Check().ok());
}

TEST(WriteErrors, DamageThatRocksDbMeetsIsMarked) {
  CapturingLogger logger;
  TempDir dir = TempDir::Create(testing::TempDir(), "write-errors-").value();
  WriteErrors errors(dir.path(), logger);
  rocksdb::Status full = rocksdb::Status::NoSpace("full");
  errors.OnBackgroundError(rocksdb::BackgroundErrorReason::kCompaction, &full);
  EXPECT_FALSE(WriteErrors::MetDamage(dir.path()));
  rocksdb::Status damage = rocksdb::Status::Corruption("checksum");
  errors.OnBackgroundError(rocksdb::BackgroundErrorReason::kCompaction, &damage);
  EXPECT_TRUE(WriteErrors::MetDamage(dir.path()));
}

}  // namespace
}  // namespace fusion
