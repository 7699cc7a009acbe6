#pragma once

/// \file
/// A stream relation that is nothing but its facts.

#include <string>
#include <utility>

#include "plan/scan.h"

namespace fleuve::connectors {

class BasicStreamRelation : public plan::StreamRelation {
 public:
  BasicStreamRelation(types::Schema schema, std::string name, std::string provider, plan::Options options)
      : schema_(std::move(schema)),
        name_(std::move(name)),
        provider_(std::move(provider)),
        options_(std::move(options)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return provider_; }
  const plan::Options& options() const override { return options_; }

 private:
  types::Schema schema_;
  std::string name_;
  std::string provider_;
  plan::Options options_;
};

}  // namespace fleuve::connectors
