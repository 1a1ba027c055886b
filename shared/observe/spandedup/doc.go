// Package spandedup decides which of the spans that report a call of a model are counted, so
// that each call is charged once. It knows nothing about attributes and prices.
//
// Several spans in a line report the same call: parents repeat the usage of their children,
// and two instrumentations of one client report one call each. Only the innermost span of a
// line counts, whatever stands between. What arrives later is compared with what a row of
// the table usage remembers of its trace: the places of its spans, and the usage that was
// charged. A span that was counted before the call below it arrives cannot be uncounted, so
// the late call is charged only for usage that the span did not have.
//
// A row holds the last MaxSpans spans of a trace and expires after Remembered.
package spandedup
