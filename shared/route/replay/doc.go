// Package replay tells what would have happened to recorded requests if something had been
// different: a config, limits, prices, or guardrails. It gets records in the order in which
// they arrived, and keeps sums, the counters of limits and a few examples. Nothing is sent,
// stored or counted.
//
// Decisions are made by the same code as for requests, from the data in the records: the
// numbers that were drawn, the states of breakers, the answers of targets, and the usage.
// With nothing changed, every decision is the same again. What the records cannot tell is
// named, and counts as it was recorded.
package replay
