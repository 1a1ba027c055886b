// Package spandedup decides which of the spans that report a model call are counted, so
// that each call is charged once. It does not depend on attributes and prices.
//
// Several spans of a path report the same call: parents repeat the usage of their
// children, and two instrumentations of one client report one call each. Only the
// innermost span of a path counts, regardless of the spans between. Later spans are
// compared with the row of the table usage for their trace: the places of its spans, and
// the usage that was charged. A span that was counted before the call below it arrives
// cannot be uncounted, so the late call is charged only for usage that the span did not
// have.
//
// A row holds the last MaxSpans spans of a trace and expires after Remembered.
package spandedup
