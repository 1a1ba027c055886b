// Package replay computes what would have happened to recorded requests under another config,
// other limits, prices, or guardrails. It gets records in the order in which they arrived, and
// maintains sums, the counters of limits and a few examples. Nothing is sent, stored or
// counted.
//
// Decisions are made by the same code as for requests, from the data in the records: the random
// draws, the states of breakers, the responses of targets, and the usage. Without changes,
// every decision is the same. Data that the records lack is named, and counts as it was
// recorded.
package replay
