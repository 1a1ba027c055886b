// Package basic implements the checks that need only the request or the response: patterns,
// counts, words, JSON, code, letters, and request properties other than text. The data of their
// verdicts is part of the API.
package basic
