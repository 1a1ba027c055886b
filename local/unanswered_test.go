package main

import ()

// broken are successes that are none, as the mock makes them, and what of them
// is paid for.
var broken = []struct {
	directives string
	paid       bool
}{
	{"html&status=200", false}, {"empty", false}, {"garbage", false}, {"cut=after:0", false}, {"cut=after:2", false},
	{"wrong-length", true}, {"gzip&wrong-length", true},
}
