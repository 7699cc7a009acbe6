#include <algorithm>

#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<int> Parser::AddGrouping(GroupingState* state, Expr expression, std::size_t first) {
  // The same text is the same expression.
  std::string key;
  for (std::size_t i = first; i < at_; ++i) {
    key += tokens_[i].kind == TokenKind::kWord     ? tokens_[i].upper
           : tokens_[i].kind == TokenKind::kString ? "'" + tokens_[i].text + "'"
                                                   : tokens_[i].text;
    key.push_back(' ');
  }
  const auto [entry, inserted] = state->index_of.emplace(key, static_cast<int>(state->expressions.size()));
  if (inserted) {
    state->expressions.push_back(expression);
  }
  return entry->second;
}

Result<std::vector<int>> Parser::ParseGroupingTuple(GroupingState* state) {
  std::vector<int> items;
  if (IsSymbol("(") && !IsQueryAhead(1)) {
    // `(a, b)` is a set of its own; `(a + b) * 2` and `(a)` are expressions.
    const std::size_t mark = at_;
    Advance();
    if (AcceptSymbol(")")) {
      return items;
    }
    bool tuple = true;
    do {
      const std::size_t first = at_;
      auto item = ParseExpression();
      if (!item.ok()) {
        return std::move(item).error();
      }
      FLEUVE_ASSIGN(const int index, AddGrouping(state, *item, first));
      items.push_back(index);
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    tuple = IsSymbol(",") || IsSymbol(")");
    if (tuple || items.size() > 1) {
      return items;
    }
    at_ = mark;
    items.clear();
  }
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr item, ParseExpression());
  FLEUVE_ASSIGN(const int index, AddGrouping(state, item, first));
  items.push_back(index);
  return items;
}

Result<Parser::Sets> Parser::ParseGroupingElement(GroupingState* state, bool* plain) {
  *plain = false;
  const bool rollup = IsWord("ROLLUP") && IsSymbol("(", 1);
  const bool cube = IsWord("CUBE") && IsSymbol("(", 1);
  if (rollup || cube) {
    Advance();
    Advance();
    Sets parts;
    do {
      FLEUVE_ASSIGN(std::vector<int> part, ParseGroupingTuple(state));
      parts.push_back(std::move(part));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    Sets sets;
    if (rollup) {
      for (std::size_t length = parts.size() + 1; length-- > 0;) {
        std::vector<int> set;
        for (std::size_t i = 0; i < length; ++i) {
          set.insert(set.end(), parts[i].begin(), parts[i].end());
        }
        sets.push_back(std::move(set));
      }
      return sets;
    }
    if (parts.size() > 12) {
      return Refused("CUBE over more than 12 columns");
    }
    const std::size_t count = std::size_t{1} << parts.size();
    for (std::size_t mask = count; mask-- > 0;) {
      std::vector<int> set;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if ((mask >> (parts.size() - 1 - i)) & 1) {
          set.insert(set.end(), parts[i].begin(), parts[i].end());
        }
      }
      sets.push_back(std::move(set));
    }
    return sets;
  }
  if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
    Advance();
    Advance();
    Advance();
    Sets sets;
    do {
      if ((IsWord("ROLLUP") || IsWord("CUBE")) && IsSymbol("(", 1)) {
        bool ignored = false;
        FLEUVE_ASSIGN(const Sets inner, ParseGroupingElement(state, &ignored));
        sets.insert(sets.end(), inner.begin(), inner.end());
      } else if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
        bool ignored = false;
        FLEUVE_ASSIGN(const Sets inner, ParseGroupingElement(state, &ignored));
        sets.insert(sets.end(), inner.begin(), inner.end());
      } else {
        FLEUVE_ASSIGN(std::vector<int> set, ParseGroupingTuple(state));
        sets.push_back(std::move(set));
      }
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    return sets;
  }
  *plain = true;
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr item, ParseExpression());
  const auto row = rows_.find(item);
  std::vector<int> set;
  if (row != rows_.end() && IsSymbol("(", 0)) {
    return SyntaxError();
  }
  FLEUVE_ASSIGN(const int index, AddGrouping(state, item, first));
  set.push_back(index);
  return Sets{set};
}

Result<Parser::Rel> Parser::ParseGroupBy(Rel input, const std::vector<Expr>& select) {
  pb::RelationExtension extension;
  auto* aggregate = extension.mutable_aggregate();
  if (input != nullptr) {
    aggregate->mutable_input()->CopyFrom(*input);
  } else {
    aggregate->mutable_input()->mutable_project();
  }
  GroupingState state;
  if (IsWord("ALL") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && !IsSymbol("(", 1)) {
    Advance();
    aggregate->set_group_by_all(true);
  } else {
    Sets product{{}};
    bool any_sets = false;
    do {
      bool plain = false;
      FLEUVE_ASSIGN(const Sets sets, ParseGroupingElement(&state, &plain));
      any_sets = any_sets || !plain;
      Sets next;
      for (const auto& left : product) {
        for (const auto& right : sets) {
          std::vector<int> joined = left;
          for (const int index : right) {
            if (std::find(joined.begin(), joined.end(), index) == joined.end()) {
              joined.push_back(index);
            }
          }
          next.push_back(std::move(joined));
        }
      }
      if (next.size() > 65536) {
        return Refused("more than 65,536 grouping sets");
      }
      product = std::move(next);
    } while (AcceptSymbol(","));
    if (AreWords({"WITH", "ROLLUP"}) || AreWords({"WITH", "CUBE"})) {
      const bool rollup = IsWord("ROLLUP", 1);
      Advance();
      Advance();
      const std::size_t count = state.expressions.size();
      product.clear();
      any_sets = true;
      if (rollup) {
        for (std::size_t length = count + 1; length-- > 0;) {
          std::vector<int> set;
          for (std::size_t i = 0; i < length; ++i) {
            set.push_back(static_cast<int>(i));
          }
          product.push_back(std::move(set));
        }
      } else {
        if (count > 12) {
          return Refused("CUBE over more than 12 columns");
        }
        for (std::size_t mask = std::size_t{1} << count; mask-- > 0;) {
          std::vector<int> set;
          for (std::size_t i = 0; i < count; ++i) {
            if ((mask >> (count - 1 - i)) & 1) {
              set.push_back(static_cast<int>(i));
            }
          }
          product.push_back(std::move(set));
        }
      }
    } else if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
      // GROUP BY a, b GROUPING SETS (...): the sets alone count.
      bool plain = false;
      FLEUVE_ASSIGN(product, ParseGroupingElement(&state, &plain));
      any_sets = true;
    }
    if (any_sets) {
      for (const auto& set : product) {
        auto* message = aggregate->add_sets();
        for (const int index : set) {
          message->add_index(index);
        }
      }
    }
  }
  for (Expr item : select) {
    aggregate->add_select()->CopyFrom(*item);
  }
  for (Expr item : state.expressions) {
    aggregate->add_grouping()->CopyFrom(*item);
  }
  return ExtendedRel(extension);
}

}  // namespace fleuve::sql
