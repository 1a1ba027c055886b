// Package replay asks of recorded requests what would have become of them had
// something been different: a config, limits, prices, or guardrails. It is fed records
// in the order in which they arrived, and keeps sums, the counters of limits and a few
// examples; nothing is sent, stored or counted.
//
// Decisions are taken by what takes them for requests, from what the records hold: the
// numbers that were drawn, the states of breakers, the answers that targets gave, and
// what was used. With nothing changed, what was decided is decided again. What the
// records cannot tell is named, and counts as it was recorded.
package replay
