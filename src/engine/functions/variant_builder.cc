#include "engine/functions/register_internal.h"
#include "engine/functions/variant_builder_internal.h"

namespace fleuve::engine {

int DecimalDigits(types::Int128 value) {
  int digits = 0;
  if (value < 0) {
    value = -value;
  }
  while (value != 0) {
    ++digits;
    value /= 10;
  }
  return std::max(digits, 1);
}

std::uint64_t VariantBuilder::IdOf(const std::string& name) {
  const auto [entry, inserted] = ids_.emplace(name, names_.size());
  if (inserted) {
    names_.push_back(name);
  }
  return entry->second;
}

void VariantBuilder::AppendText(std::string_view text, std::string& out) {
  if (text.size() <= 63) {
    out.push_back(static_cast<char>((text.size() << 2) | kShortString));
  } else {
    out.push_back(Header(kLongString));
    Put(out, text.size(), 4);
  }
  out += text;
}

void VariantBuilder::AppendBytes(std::string_view bytes, std::string& out) {
  out.push_back(Header(kPrimitiveBinary));
  Put(out, bytes.size(), 4);
  out += bytes;
}

void VariantBuilder::AppendWhole(std::int64_t value, std::string& out) {
  if (value >= INT8_MIN && value <= INT8_MAX) {
    out.push_back(Header(kInt8));
    Put(out, static_cast<std::uint64_t>(value), 1);
  } else if (value >= INT16_MIN && value <= INT16_MAX) {
    out.push_back(Header(kInt16));
    Put(out, static_cast<std::uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out.push_back(Header(kInt32));
    Put(out, static_cast<std::uint64_t>(value), 4);
  } else {
    out.push_back(Header(kInt64));
    Put(out, static_cast<std::uint64_t>(value), 8);
  }
}

void VariantBuilder::AppendDecimal(types::Int128 value, int scale, std::string& out) {
  const int digits = std::max(DecimalDigits(value), scale);
  const auto bits = static_cast<unsigned __int128>(value);
  const int type = digits <= 9 ? kDecimal4 : digits <= 18 ? kDecimal8 : kDecimal16;
  out.push_back(Header(type));
  out.push_back(static_cast<char>(scale));
  Put(out, static_cast<std::uint64_t>(bits), type == kDecimal4 ? 4 : 8);
  if (type == kDecimal16) {
    Put(out, static_cast<std::uint64_t>(bits >> 64), 8);
  }
}

void VariantBuilder::AppendReal(double value, std::string& out) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  out.push_back(Header(kPrimitiveDouble));
  Put(out, bits, 8);
}

void VariantBuilder::AppendFloat(float value, std::string& out) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  out.push_back(Header(kPrimitiveFloat));
  Put(out, bits, 4);
}

void VariantBuilder::AppendMembers(std::vector<Member> members, std::string& out) {
  std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.name < b.name; });
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (members[i].name == members[i - 1].name) {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "VARIANT_DUPLICATE_KEY",
                          "Failed to build variant because of a duplicate object key `" + members[i].name + "`.")
                        .With("key", members[i].name)
                        .Family(ErrorFamily::kRuntime));
    }
  }
  std::uint64_t bytes = 0;
  std::uint64_t most_id = 0;
  for (const Member& member : members) {
    bytes += member.value.size();
    most_id = std::max(most_id, member.id);
  }
  const bool large = members.size() > 255;
  const std::size_t id_size = SizeFor(most_id);
  const std::size_t offset_size = SizeFor(bytes);
  out.push_back(static_cast<char>((((large ? 16 : 0) | ((id_size - 1) << 2) | (offset_size - 1)) << 2) | kObjectBasic));
  Put(out, members.size(), large ? 4 : 1);
  for (const Member& member : members) {
    Put(out, member.id, id_size);
  }
  std::uint64_t offset = 0;
  Put(out, 0, offset_size);
  for (const Member& member : members) {
    offset += member.value.size();
    Put(out, offset, offset_size);
  }
  for (const Member& member : members) {
    out += member.value;
  }
}

void VariantBuilder::AppendItems(const std::vector<std::string>& items, std::string& out) {
  std::uint64_t bytes = 0;
  for (const std::string& item : items) {
    bytes += item.size();
  }
  const bool large = items.size() > 255;
  const std::size_t offset_size = SizeFor(bytes);
  out.push_back(static_cast<char>((((large ? 4 : 0) | (offset_size - 1)) << 2) | kArrayBasic));
  Put(out, items.size(), large ? 4 : 1);
  std::uint64_t offset = 0;
  Put(out, 0, offset_size);
  for (const std::string& item : items) {
    offset += item.size();
    Put(out, offset, offset_size);
  }
  for (const std::string& item : items) {
    out += item;
  }
}

void VariantBuilder::AppendView(const VariantView& view, std::string& out) {
  switch (view.kind()) {
    case VariantKind::kObject: {
      std::vector<Member> members;
      for (std::size_t i = 0, count = view.size(); i < count; ++i) {
        Member member{std::string(view.name(i)), 0, {}};
        member.id = IdOf(member.name);
        AppendView(view.child(i), member.value);
        members.push_back(std::move(member));
      }
      return AppendMembers(std::move(members), out);
    }
    case VariantKind::kArray: {
      std::vector<std::string> items(view.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        AppendView(view.child(i), items[i]);
      }
      return AppendItems(items, out);
    }
    default:
      out += view.bytes();
  }
}

std::string VariantBuilder::Metadata() const {
  std::string out;
  std::size_t bytes = 0;
  for (const std::string& name : names_) {
    bytes += name.size();
  }
  const std::size_t size = SizeFor(std::max(bytes, names_.size()));
  out.push_back(static_cast<char>(1 | ((size - 1) << 6)));
  Put(out, names_.size(), size);
  std::size_t offset = 0;
  Put(out, 0, size);
  for (const std::string& name : names_) {
    offset += name.size();
    Put(out, offset, size);
  }
  for (const std::string& name : names_) {
    out += name;
  }
  return out;
}

}  // namespace fleuve::engine
