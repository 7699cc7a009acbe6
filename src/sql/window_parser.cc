#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<Parser::Expr> Parser::ParseWindowOver(Expr function, std::size_t first) {
  FLEUVE_TRY(ExpectWord("OVER"));
  Expr expression = New<sc::Expression>();
  auto* window = expression->mutable_window();
  window->set_allocated_window_function(function);
  const bool named = IsIdentifier();
  const bool named_in_parentheses = IsSymbol("(") && IsIdentifier(1) && IsSymbol(")", 2);
  if (named || named_in_parentheses) {
    if (named_in_parentheses) {
      Advance();
    }
    const std::string name = Upper(Current().text);
    if (window_scopes_.empty() || !window_scopes_.back().contains(name)) {
      const std::size_t at = at_;
      const std::string text = Current().text;
      Advance();
      return ErrorFrom(at, "MISSING_WINDOW_SPECIFICATION",
                       "Window specification is not defined in the WINDOW clause for " + text + ".")
          .With("windowName", text);
    }
    const sc::Expression::Window& definition = *window_scopes_.back().at(name);
    window->mutable_partition_spec()->CopyFrom(definition.partition_spec());
    window->mutable_order_spec()->CopyFrom(definition.order_spec());
    if (definition.has_frame_spec()) {
      window->mutable_frame_spec()->CopyFrom(definition.frame_spec());
    }
    Advance();
    if (named_in_parentheses) {
      Advance();
    }
    return Spanned(expression, first);
  }
  FLEUVE_TRY(ParseWindowSpec(window));
  return Spanned(expression, first);
}

Result<void> Parser::ParseWindowSpec(sc::Expression::Window* window) {
  FLEUVE_TRY(ExpectSymbol("("));
  if (AcceptWords({"CLUSTER", "BY"})) {
    do {
      FLEUVE_ASSIGN(Expr item, ParseExpression());
      window->add_partition_spec()->CopyFrom(*item);
    } while (AcceptSymbol(","));
  } else {
    if (AcceptWords({"PARTITION", "BY"}) || AcceptWords({"DISTRIBUTE", "BY"})) {
      do {
        FLEUVE_ASSIGN(Expr item, ParseExpression());
        window->mutable_partition_spec()->AddAllocated(item);
      } while (AcceptSymbol(","));
    }
    if (AcceptWords({"ORDER", "BY"}) || AcceptWords({"SORT", "BY"})) {
      do {
        FLEUVE_ASSIGN(sc::Expression::SortOrder * order, ParseSortItem());
        window->mutable_order_spec()->AddAllocated(order);
      } while (AcceptSymbol(","));
    }
  }
  if (IsAnyWord({"ROWS", "RANGE"})) {
    auto* frame = window->mutable_frame_spec();
    frame->set_frame_type(IsWord("ROWS") ? sc::Expression::Window::WindowFrame::FRAME_TYPE_ROW
                                         : sc::Expression::Window::WindowFrame::FRAME_TYPE_RANGE);
    Advance();
    const auto wrong_side = [this](const char* side) {
      return ErrorFrom(at_, "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_INVALID_BOUND",
                       "Window frame upper bound and lower bound do not fit together: UNBOUNDED " + std::string(side) +
                           " stands at the wrong end.")
          .Family(ErrorFamily::kAnalysis);
    };
    if (AcceptWord("BETWEEN")) {
      if (AreWords({"UNBOUNDED", "FOLLOWING"})) {
        return wrong_side("FOLLOWING");
      }
      FLEUVE_TRY(ParseFrameBound(frame->mutable_lower()));
      FLEUVE_TRY(ExpectWord("AND"));
      if (AreWords({"UNBOUNDED", "PRECEDING"})) {
        return wrong_side("PRECEDING");
      }
      FLEUVE_TRY(ParseFrameBound(frame->mutable_upper()));
    } else {
      FLEUVE_TRY(ParseFrameBound(frame->mutable_lower()));
      frame->mutable_upper()->set_current_row(true);
    }
  }
  return ExpectSymbol(")");
}

Result<void> Parser::ParseFrameBound(sc::Expression::Window::WindowFrame::FrameBoundary* bound) {
  if (IsWord("UNBOUNDED") && IsAnyWord({"PRECEDING", "FOLLOWING"}, 1)) {
    Advance();
    Advance();
    bound->set_unbounded(true);
    return {};
  }
  if (IsWord("CURRENT") && IsWord("ROW", 1)) {
    Advance();
    Advance();
    bound->set_current_row(true);
    return {};
  }
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr value, ParseExpression());
  if (AcceptWord("PRECEDING")) {
    value = Spanned(Call("unary_minus", {value}), first);
  } else {
    FLEUVE_TRY(ExpectWord("FOLLOWING"));
  }
  bound->set_allocated_value(value);
  return {};
}

Result<sc::Expression::SortOrder*> Parser::ParseSortItem() {
  FLEUVE_ASSIGN(Expr child, ParseExpression());
  auto* order = New<sc::Expression::SortOrder>();
  order->set_allocated_child(child);
  bool descending = false;
  if (AcceptWord("DESC")) {
    descending = true;
  } else {
    AcceptWord("ASC");
  }
  order->set_direction(descending ? sc::Expression::SortOrder::SORT_DIRECTION_DESCENDING
                                  : sc::Expression::SortOrder::SORT_DIRECTION_ASCENDING);
  bool nulls_first = !descending;
  if (AcceptWord("NULLS")) {
    if (AcceptWord("LAST")) {
      nulls_first = false;
    } else {
      FLEUVE_TRY(ExpectWord("FIRST"));
      nulls_first = true;
    }
  }
  order->set_null_ordering(nulls_first ? sc::Expression::SortOrder::SORT_NULLS_FIRST
                                       : sc::Expression::SortOrder::SORT_NULLS_LAST);
  return order;
}

}  // namespace fleuve::sql
