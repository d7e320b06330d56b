// Empty: with it the compiler takes a function without a body (raw.go).
