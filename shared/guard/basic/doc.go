// Package basic runs the checks that are decided from the request or the answer
// alone: patterns, counts, words, JSON, code, letters, and what a request is beside
// its text. The data of their verdicts are part of the API.
package basic
