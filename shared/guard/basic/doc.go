// Package basic runs the checks that only need the request or the response: patterns, counts,
// words, JSON, code, letters, and properties of a request beside its text. The data of their
// verdicts are part of the API.
package basic
