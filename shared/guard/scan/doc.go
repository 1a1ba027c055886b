// Package scan runs the checks that need no vendor: the scanners below it, as functions of
// guardrails. They judge by lists, forms and rules, at once and on this machine. Each
// scanner's comment tells what it finds and misses.
package scan
