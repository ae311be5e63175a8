"""How an operator is declared: `@op`, checks of arguments, promotion, wide integers, and the errors of a call."""
