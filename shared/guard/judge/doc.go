// Package judge is what the packages with checks share: what a check is given of a request or a
// response, what it returns, and the register in which each package puts the functions of its
// checks. The chain of guardrails calls the functions; only the chain knows of hooks, denials
// and feedback.
package judge
