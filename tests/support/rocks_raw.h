#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fusion {

/// Opens the database of a closed store as it is, with the families it has (and `also`, created),
/// and does something to them by name.
inline void WithRawDatabase(
    const std::string& dir,
    const std::function<void(rocksdb::DB*, std::map<std::string, rocksdb::ColumnFamilyHandle*>&)>&
        change,
    const std::string& also = "") {
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, dir, &names).ok());
  if (!also.empty()) names.push_back(also);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) {
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  rocksdb::DBOptions options;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, dir, families, &handles, &db).ok());
  std::map<std::string, rocksdb::ColumnFamilyHandle*> by_name;
  for (size_t i = 0; i < names.size(); ++i) by_name[names[i]] = handles[i];
  change(db, by_name);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
  }
  delete db;
}

/// Makes a closed store what a server of schema 1 left behind: facts without mark and tenant, the
/// oldest of them without created_ms.
inline void MakeSchema1(const std::string& dir) {
  WithRawDatabase(dir, [](rocksdb::DB* db, auto& families) {
    rocksdb::ColumnFamilyHandle* meta = families["meta"];
    std::map<std::string, std::string> old;
    std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}, meta));
    for (it->Seek("e"); it->Valid() && it->key().starts_with("e"); it->Next()) {
      const std::string now = it->value().ToString();
      std::string value(56, '\0');
      std::memcpy(value.data(), now.data(), 24);            // bytes, cost_ms, last_use_ms
      value[7] = '\0';                                      // the mark
      std::memcpy(value.data() + 24, now.data() + 32, 32);  // digest
      const bool oldest = old.empty();
      old[it->key().ToString()] = oldest ? value : value + now.substr(24, 8);
    }
    for (const auto& [key, value] : old) ASSERT_TRUE(db->Put({}, meta, key, value).ok());
    ASSERT_TRUE(db->Put({}, meta, "schema", "1").ok());
  });
}

}  // namespace fusion
