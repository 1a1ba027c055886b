// Package judge is what the parts of the guardrails share: what a check is shown of
// a request or an answer, what it says of it, and the register in which the parts
// that know a check put the function that runs it. The chain of guardrails calls
// the functions; it alone knows of hooks, denials and feedback.
package judge
